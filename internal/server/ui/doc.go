// Package ui is what people see of the control plane: a board of all workloads, and a page for each. It is a handler
// of embedded files, which knows no rows: everything shown is read by the browser through the API, with the rights of
// whoever looks.
//
// The files in assets are what the browser gets, as they are written: there is no build step. They are plain ES
// modules, each with one subject; main.js is where to begin to read. What a cluster says (names, messages, definitions)
// is hostile input: it is only ever put into text nodes and attributes, see dom.js and text.js, and the
// Content-Security-Policy forbids every other way in.
package ui
