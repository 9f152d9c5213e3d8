// Package broken does not compile.
package broken

// V has the wrong type.
var V int = "text"
