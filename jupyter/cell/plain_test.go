package cell

import "testing"

func TestPlainTypes(t *testing.T) {
	const tag = "\"\U00012038:\\\"main.T\\\"\""
	const hidden = "\"json:\\\"-\\\" xml:\\\"-\\\" \U00012038:\\\"main.U#3\\\"\""
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"a struct { X int } and {}", "a struct { X int } and {}"},
		{"[]struct { X int " + tag + "; Y string }", "[]main.T"},
		{"map[string]*struct { \U00012038a int " + hidden + "; B []struct { X int " + tag + " } } end", "map[string]*main.U end"},
		{"struct { In struct { Z int } " + tag + "; s string \"json:\\\"}\\\"\" }", "main.T"},
		{"struct { In struct { X int " + tag + " } " + hidden + " }", "main.U"},
		{"struct { \U00012038y int \"json:\\\"-\\\" xml:\\\"-\\\"\" }", "struct { y int }"},
		{"cut off: struct { X int " + tag + "; Y", "cut off: struct { X int \":\\\"main.T\\\"\"; Y"},
		{"{\U00012039Base:1}", "{Base:1}"},
	} {
		if got := PlainTypes(c.in); got != c.want {
			t.Errorf("PlainTypes(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}
