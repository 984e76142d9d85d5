// Package luascript assesses objects by health scripts of Argo CD: scripts in Lua that get the global obj and return a table
// with status and message. docs/health-rules.md describes them.
//
// A script has no access to files, processes or the network. Four bounds hold for each evaluation:
//   - Steps: the interpreter asks the context before each instruction, and meter counts them. Functions count their loops.
//   - Memory: the interpreter has no bound. [rewrite] replaces the expressions that allocate by calls, which count bytes.
//     Tables have no array part, because one assignment could allocate a large one.
//   - Depth: the interpreter bounds its stacks.
//   - Time: a limit for operations whose steps do not reflect their time.
//
// An evaluation that exceeds a bound ends, also within pcall.
package luascript
