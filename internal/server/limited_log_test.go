package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimitedLog_ManyLines_AreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := slog.NewLogLogger(newLimitedLog(slog.NewTextHandler(&text, nil)), slog.LevelWarn)
		for range linesBurst + 7 {
			log.Print("no TLS")
		}
		if got := strings.Count(text.String(), "no TLS"); got != linesBurst {
			t.Errorf("%d lines are written, want %d", got, linesBurst)
		}
		time.Sleep(time.Second / linesPerSecond)
		log.Print("last")
		if got := text.String(); !strings.Contains(got, "msg=last skippedBefore=7") {
			t.Errorf("the log ends without the number of skipped lines: %s", got)
		}
	})
}
