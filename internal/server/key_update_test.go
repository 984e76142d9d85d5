package server

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// updater writes records of TLS 1.3 and updates its key, which package tls does not offer.
type updater struct {
	net.Conn
	secret   []byte
	sealer   cipher.AEAD
	nonce    []byte
	sequence uint64
	records  bytes.Buffer // that are not written yet
}

// Types of records, and a KeyUpdate that requests one of the server: RFC 8446, sections 4.6.3 and 5.1.
const (
	handshakeRecord   = 22
	applicationRecord = 23
	keyUpdate         = "\x18\x00\x00\x01\x01"
)

// newUpdater connects to a server with a protocol.
func newUpdater(t *testing.T, s *tlsServer, protocol string) *updater {
	t.Helper()
	var keyLog bytes.Buffer
	config := trust(s.authority.PEM())
	config.MinVersion, config.NextProtos, config.KeyLogWriter = tls.VersionTLS13, []string{protocol}, &keyLog
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "https://")) //nolint:noctx // it is on this machine
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	client := tls.Client(connection, config)
	if err := client.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if suite := client.ConnectionState().CipherSuite; suite != tls.TLS_AES_128_GCM_SHA256 {
		t.Fatalf("the cipher suite is %s, want that of the test", tls.CipherSuiteName(suite))
	}
	u := &updater{Conn: connection}
	for line := range strings.Lines(keyLog.String()) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "CLIENT_TRAFFIC_SECRET_0" {
			if u.secret, err = hex.DecodeString(fields[2]); err != nil {
				t.Fatal(err)
			}
		}
	}
	u.setKey(t)
	return u
}

// expand is HKDF-Expand-Label of RFC 8446, section 7.1.
func (u *updater) expand(t *testing.T, label string, length int) []byte {
	t.Helper()
	label = "tls13 " + label
	info := fmt.Sprintf("%s%c%s\x00", binary.BigEndian.AppendUint16(nil, uint16(length)), len(label), label)
	key, err := hkdf.Expand(sha256.New, u.secret, info, length)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (u *updater) setKey(t *testing.T) {
	t.Helper()
	block, err := aes.NewCipher(u.expand(t, "key", 16))
	if err != nil {
		t.Fatal(err)
	}
	if u.sealer, err = cipher.NewGCM(block); err != nil {
		t.Fatal(err)
	}
	u.nonce, u.sequence = u.expand(t, "iv", 12), 0
}

// add adds a record.
func (u *updater) add(kind byte, data string) {
	sequence := append(make([]byte, 4), binary.BigEndian.AppendUint64(nil, u.sequence)...)
	nonce := make([]byte, len(u.nonce))
	for i := range nonce {
		nonce[i] = u.nonce[i] ^ sequence[i]
	}
	u.sequence++
	plain := append([]byte(data), kind)
	header := binary.BigEndian.AppendUint16([]byte{applicationRecord, 3, 3}, uint16(len(plain)+u.sealer.Overhead()))
	u.records.Write(header)
	u.records.Write(u.sealer.Seal(nil, nonce, plain, header))
}

func (u *updater) updateKey(t *testing.T) {
	t.Helper()
	u.add(handshakeRecord, keyUpdate)
	u.secret = u.expand(t, "traffic upd", sha256.Size)
	u.setKey(t)
}

// A client of HTTP/1.1 updates its key again and again within the header of a request. The server answers at the permitted rate.
func TestServer_KeyUpdates_PauseTheirConnection(t *testing.T) {
	const (
		duration  = 3 * time.Second
		perHeader = 15 // package tls ends a connection at the 17th record without application data
	)
	s := startTLS(t, "sqlite:"+filepath.Join(t.TempDir(), "rows.db"), nil)
	u := newUpdater(t, s, "http/1.1")
	if err := u.SetDeadline(time.Now().Add(duration)); err != nil {
		t.Fatal(err)
	}
	var answered atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n, _ := io.Copy(io.Discard, u) // until the deadline
		answered.Store(n)
	}()
	u.add(applicationRecord, "GET /healthz HTTP/1.1\r\nHost: api\r\n\r\n")
	u.add(applicationRecord, "GET /healthz HTTP/1.1\r\nHost: api\r\nX-Long: ")
	for {
		u.add(applicationRecord, "x")
		for range perHeader {
			u.updateKey(t)
		}
		if _, err := u.records.WriteTo(u); err != nil {
			break
		}
	}
	<-ended
	const most = anonymousBytesBurst + anonymousBytesPerSecond*int64(duration/time.Second) // the answer to an update is shorter than recordCost
	if got := answered.Load(); got > most || got < anonymousBytesBurst/2 {
		t.Errorf("the server answered with %d bytes within %s, want %d to %d", got, duration, anonymousBytesBurst/2, most)
	}
	if answer := s.send(t, "", http.MethodGet, "/healthz", ""); answer.code != http.StatusOK {
		t.Errorf("/healthz: %d", answer.code)
	}
}
