package image

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// here is a resolve function: every path of the build stage is under /here on this machine.
func here(stagePath string) (string, error) { return "/here" + stagePath, nil }

func TestDockerfileIsUnderstood(t *testing.T) {
	for _, tc := range []struct {
		reason string
		text   string
		want   Spec
	}{
		{
			"the whole of it",
			"# syntax=docker/dockerfile:1\nARG V=1\nFROM golang AS build\nRUN a \\\n  && b\n\nFROM scratch\n" +
				"COPY --from=build /out/a /a\nUSER 1:2\nENTRYPOINT [\"/a\", \"$x\", \"b c\"]\n",
			Spec{Files: map[string]string{"/a": "/here/out/a"}, User: "1:2", Entrypoint: []string{"/a", "$x", "b c"}},
		},
		{
			"nothing but a base",
			"FROM scratch",
			Spec{Files: map[string]string{}},
		},
		{
			"names and instructions in any case, tabs, CR LF, a named last stage",
			"from golang as Build\r\nfrom\tscratch As last\r\n\tcopy\t--from=build /x  /y\r\nuser 7\r\n",
			Spec{Files: map[string]string{"/y": "/here/x"}, User: "7"},
		},
		{
			"lines are joined as Docker joins them: without a space, over comments and empty lines, with blanks after the backslash",
			"FROM golang AS build\nFROM scratch\nCOPY --from=build \\  \n  # why\n\n /x/lo\\\nng /y\nENTRYPOINT [\"/a\\\nb\"]\n",
			Spec{Files: map[string]string{"/y": "/here/x/long"}, Entrypoint: []string{"/ab"}},
		},
		{
			"a backslash at the end of the file",
			"FROM scratch\nUSER 1 \\",
			Spec{Files: map[string]string{}, User: "1"},
		},
		{
			"into a folder, from the second of three stages; what comes later counts",
			"FROM a AS one\nFROM b AS two\nUSER 9\nFROM scratch\nUSER 1\nUSER 2\nCOPY --from=two /x/y /z/\nCOPY --from=one /v /z/y\n",
			Spec{Files: map[string]string{"/z/y": "/here/v"}, User: "2"},
		},
		{
			"earlier stages may have what they like",
			"FROM golang AS build\nEXPOSE 1\nCOPY a b\nFROM scratch\n",
			Spec{Files: map[string]string{}},
		},
	} {
		path := filepath.Join(t.TempDir(), "Dockerfile")
		write(t, path, tc.text, 0o600)
		if got, err := FromDockerfile(path, "", here); err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %+v, %v, want %+v", tc.reason, got, err, tc.want)
		}
	}
}

func TestTargetOfDockerfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "Dockerfile")
	write(t, path, "FROM golang AS build\nRUN a\nFROM scratch AS one\nUSER 1\nFROM scratch AS Two\nUSER 2\nFROM scratch\nUSER 3\n", 0o600)
	for target, user := range map[string]string{"one": "1", "two": "2", "": "3"} {
		if got, err := FromDockerfile(path, target, here); err != nil || got.User != user {
			t.Errorf("target %q: got %+v, %v, want the user %s", target, got, err, user)
		}
	}
	for target, want := range map[string]string{
		"build": "Dockerfile:1: FROM golang AS build: this stage is not understood",
		"three": `Dockerfile:1: there is no stage "three"`,
	} {
		if _, err := FromDockerfile(path, target, here); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("target %q: got %v, want %q", target, err, want)
		}
	}
}

func TestDockerfileIsRefused(t *testing.T) {
	const start = "FROM golang AS build\n\nFROM scratch\n" // three lines
	for _, tc := range []struct {
		reason string
		text   string
		want   string
	}{
		{"empty", "", "Dockerfile:1: there is no FROM"},
		{"another base", "FROM golang AS build\nFROM alpine\n", "Dockerfile:2: FROM alpine: "},
		{"only the last stage counts", "FROM scratch\nFROM build\n", "Dockerfile:2: FROM build: "},
		{"a platform", "FROM --platform=linux/arm64 scratch\n", "Dockerfile:1: FROM --platform=linux/arm64 scratch: "},
		{"more than a base", "FROM scratch and more\n", "Dockerfile:1: FROM scratch and more: "},
		{"an instruction", start + "USER 1\nEXPOSE 8080\n", "Dockerfile:5: EXPOSE 8080: is not understood; understood are FROM scratch, COPY"},
		{"RUN", start + "RUN true\n", "Dockerfile:4: RUN true: "},
		{"the line is the first of those that are joined", start + "\nCMD \\\n  # why\n  [\"a\"]\nUSER 1\n", `Dockerfile:5: CMD ["a"]: `},
		{"COPY from the context", start + "COPY a /b\n", "Dockerfile:4: COPY a /b: "},
		{"COPY from another image", start + "COPY --from=alpine /a /b\n", `Dockerfile:4: COPY --from=alpine /a /b: this is not from an earlier stage, which are ["build"]`},
		{"COPY from an unnamed stage", "FROM a\nFROM scratch\nCOPY --from=0 /a /b\n", "Dockerfile:3: COPY --from=0 /a /b: "},
		{"COPY from itself", "FROM scratch AS me\nCOPY --from=me /a /b\n", "Dockerfile:2: COPY --from=me /a /b: "},
		{"COPY with another flag", start + "COPY --chown=1:1 --from=build /a /b\n", "Dockerfile:4: COPY --chown=1:1"},
		{"COPY of several", start + "COPY --from=build /a /b /c/\n", "Dockerfile:4: "},
		{"COPY by a pattern", start + "COPY --from=build /a* /b\n", "Dockerfile:4: "},
		{"COPY by a variable", start + "COPY --from=build /$a /b\n", "Dockerfile:4: "},
		{"COPY to a relative path", start + "COPY --from=build /a b\n", "Dockerfile:4: "},
		{"COPY of what is not known", start + "COPY --from=build /unknown /b\n", "Dockerfile:4: COPY --from=build /unknown /b: what is this"},
		{"USER by name", start + "USER nobody\n", "Dockerfile:4: USER nobody: "},
		{"USER by a variable", start + "USER $UID\n", "Dockerfile:4: USER $UID: "},
		{"ENTRYPOINT for a shell", start + "ENTRYPOINT /a\n", "Dockerfile:4: ENTRYPOINT /a: is not understood, there is no shell"},
		{"ENTRYPOINT of nothing", start + "ENTRYPOINT []\n", "Dockerfile:4: ENTRYPOINT []: "},
		{"a here-document, which may say FROM", "FROM a AS build\nRUN <<EOF\nFROM scratch\nEOF\n", "Dockerfile:2: RUN <<EOF: here-documents are not understood"},
		{"another escape character", "# escape=`\nFROM scratch\n", "Dockerfile:1: # escape=`: is not understood"},
		{"a double backslash continues nothing", start + "USER 1\\\\\nUSER 2\n", `Dockerfile:4: USER 1\\: `},
	} {
		path := filepath.Join(t.TempDir(), "Dockerfile")
		write(t, path, tc.text, 0o600)
		_, err := FromDockerfile(path, "", func(stagePath string) (string, error) {
			if stagePath == "/unknown" {
				return "", errors.New("what is this")
			}
			return here(stagePath)
		})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
		}
	}
}
