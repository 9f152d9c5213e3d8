"""jupyter_kernel_test, which checks every message against the protocol."""
import unittest

import jupyter_kernel_test

from conftest import KERNEL


class TestGo(jupyter_kernel_test.KernelTests):
    kernel_name = KERNEL
    language_name = "go"
    file_extension = ".go"
    code_hello_world = 'import "fmt"\nfmt.Print("hello, world")'
    code_stderr = 'import ("fmt"; "os")\nfmt.Fprint(os.Stderr, "test")'
    completion_samples = [
        {"text": "fmt.Printl", "matches": {"Println"}},
        {"text": "zzzz", "matches": set()},
    ]
    complete_code_samples = ["x := 1", "func f() int {\n\treturn 1\n}", "", "`abc`"]
    incomplete_code_samples = ["func f() {", "x := []int{1,", "`abc", "f("]
    invalid_code_samples = ["x := )", '"abc', "func ) {"]
    code_generate_error = 'panic("raised")'
    code_execute_result = [
        {"code": "6 * 7", "result": "42"},
        {"code": '"text"', "result": "text"},
        {"code": 'import "display"\ndisplay.HTML("<b>x</b>")', "result": "<b>x</b>", "mime": "text/html"},
    ]
    code_display_data = [
        {"code": 'import "display"\nDisplay(display.HTML("<b>x</b>"))', "mime": "text/html"},
        {"code": 'import ("display"; "image")\nDisplay(display.Image(image.NewGray(image.Rect(0, 0, 2, 2))))', "mime": "image/png"},
    ]
    code_page_something = "?fmt.Println"
    code_clear_output = 'import "display"\ndisplay.Clear(false)'
    code_history_pattern = "6*7"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "fmt.Println"

    def setUp(self):
        super().setUp()
        # Samples for completion and inspection name packages.
        self.execute_helper(code='import "fmt"')
        self.flush_channels()


class TestWelcome(jupyter_kernel_test.IopubWelcomeTests):
    kernel_name = KERNEL
    support_iopub_welcome = True


def test_no_sample_is_missing():
    """A sample left empty is a test that the suite skips."""
    samples = [n for n in vars(jupyter_kernel_test.KernelTests) if n.startswith(("code_", "complet", "incomplete_", "invalid_", "supported_", "language_", "file_"))]
    assert len(samples) > 12 and [n for n in samples if not getattr(TestGo, n)] == []


if __name__ == "__main__":
    unittest.main()
