// Package patch reads and applies patches of many files in the envelope that coding agents write. It touches no disk.
//
// # Grammar
//
//	patch   = "*** Begin Patch" { action } "*** End Patch"
//	action  = "*** Add File: " path { "+" line }
//	        | "*** Delete File: " path
//	        | "*** Update File: " path [ "*** Move to: " path ] { hunk }
//	hunk    = { "@@ " line | "@@" } { " " line | "-" line | "+" line } [ "*** End of File" ]
//
// A line behind "@@ " is an anchor: the hunk lies behind a line like it; several anchors narrow one after the other. A blank line in a hunk is
// a blank line that stays. The first hunk of an update needs no "@@". A patch without actions is legal. Around the envelope, a Markdown fence, a
// here-document and blank lines are passed over; line ends are of any kind.
//
// # Finding
//
// Hunks are looked for from the end of the one before on, strictly first: lines that are equal; without trailing, then without any surrounding
// white space; then with typographic dashes, quotes and spaces taken for plain ones. In the first way that finds any place there must be one only.
// A hunk of nothing but "+" lines goes behind its anchor, or to the end.
//
// # Writing
//
// Lines that stay come from the file. A line that replaces another keeps that one's end, further ones take the end of the line before them; a file
// without a final line end stays without. Everything outside of the hunks keeps its bytes.
package patch
