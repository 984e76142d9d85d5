// Package documents reads the commands in the documents, so that tests run what people read.
package documents

import "regexp"

var fence = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")

// ShellBlocks returns the blocks of shell commands in a text of Markdown, without their fences.
func ShellBlocks(text string) (blocks []string) {
	for _, found := range fence.FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, found[1])
	}
	return blocks
}
