// Package empty exports nothing.
package empty
