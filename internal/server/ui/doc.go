// Package ui is the page for people: a list of all workloads, and details of each. It serves embedded files and reads no rows.
// The browser reads everything through the API, with the rights of its user.
//
// The files in assets reach the browser as they are: there is no build step. They are plain ES modules with one subject each;
// main.js is the entry point. Names, messages and definitions from a cluster are hostile input. They only ever become text
// nodes and attributes (dom.js, text.js), and the Content-Security-Policy forbids every other way in.
package ui
