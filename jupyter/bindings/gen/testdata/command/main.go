// Command command cannot be imported.
package main

func main() {}
