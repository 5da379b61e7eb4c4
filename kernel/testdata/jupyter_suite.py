"""Samples of Go for jupyter_kernel_test; jupyter_test.go installs the kernelspec and runs this file."""
import unittest

import jupyter_kernel_test


class Kernel(jupyter_kernel_test.KernelTests):
    kernel_name = "skep-test"
    language_name = "go"
    file_extension = ".go"
    code_hello_world = 'import "fmt"\nfmt.Println("hello, world")'
    code_stderr = 'import ("fmt"; "os")\nfmt.Fprintln(os.Stderr, "oops")'
    completion_samples = [{"text": "fmt.Printl", "matches": {"Println"}}, {"text": "strings.ToUpperS", "matches": {"ToUpperSpecial"}}]
    complete_code_samples = ["1", "x := 1", "func f() {\n}", "for i := 0; i < 3; i++ {\n}"]
    incomplete_code_samples = ["func f() {", "x := []int{1,", "fmt.Println(", "`raw"]
    invalid_code_samples = ["x := )", "}", "a b"]
    code_generate_error = 'panic("x")'
    code_execute_result = [{"code": "1+2", "result": "3"}, {"code": '"a" + "b"', "result": "ab"}, {"code": "[]int{1, 2}", "result": "[1 2]"}]
    code_display_data = [{"code": 'Display(display.HTML("<b>x</b>"))', "mime": "text/html"}]
    supported_history_operations = ("tail", "range", "search")
    code_history_pattern = "1?2"
    code_inspect_sample = "fmt.Println"
    code_clear_output = "display.Clear(false)"


class Welcome(jupyter_kernel_test.IopubWelcomeTests):
    kernel_name = "skep-test"
    support_iopub_welcome = True


if __name__ == "__main__":
    unittest.main()
