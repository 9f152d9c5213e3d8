//go:build go1.21

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"gpunotes/jupyter/cell"
)

type executeRequest struct {
	Code            string            `json:"code"`
	Silent          bool              `json:"silent"`
	StoreHistory    *bool             `json:"store_history"`
	UserExpressions map[string]string `json:"user_expressions"`
	StopOnError     *bool             `json:"stop_on_error"`
}

// execute runs a cell and answers its request.
func (k *kernel) execute(r msgReceipt) {
	var req executeRequest
	decode(r, &req)
	stored := !req.Silent && (req.StoreHistory == nil || *req.StoreHistory)
	if stored {
		k.count++
		k.history = append(k.history, historyEntry{k.count, req.Code})
	}
	k.mu.Lock()
	k.current = &r
	k.shown = map[string]bool{}
	k.mu.Unlock()
	if !req.Silent {
		if err := r.PublishExecutionInput(k.count, req.Code); err != nil {
			logger.Println("execute_input not sent:", err)
		}
	}

	data, failed := k.evaluate(req.Code)
	k.flush()
	if failed == nil && !req.Silent && len(data.Data) > 0 {
		if err := r.PublishExecutionResult(k.count, data); err != nil {
			failed = &cell.Error{Name: "DisplayError", Message: "the value cannot be sent to the notebook: " + err.Error(), Frames: k.session.Last()}
		}
	}
	if failed != nil {
		k.fail(r, req, failed)
		return
	}
	k.reply(r, "execute_reply", map[string]interface{}{
		"status":           "ok",
		"execution_count":  k.count,
		"user_expressions": k.userExpressions(req.UserExpressions),
		"payload":          []interface{}{},
	})
}

// fail shows why a cell stopped, and drops the cells that wait behind it.
func (k *kernel) fail(r msgReceipt, req executeRequest, failed *cell.Error) {
	content := errorContent(failed.Name, failed.Message, failed.Traceback())
	if err := r.Publish("error", map[string]interface{}{
		"ename": failed.Name, "evalue": failed.Message, "traceback": failed.Traceback(),
	}); err != nil {
		logger.Println("error not sent:", err)
	}
	var aborted []message
	if req.StopOnError == nil || *req.StopOnError {
		aborted = k.takeExecutes()
	}
	content["execution_count"] = k.count
	content["user_expressions"] = map[string]interface{}{}
	content["payload"] = []interface{}{}
	k.reply(r, "execute_reply", content)
	for _, m := range aborted {
		k.status(m.msgReceipt, kernelBusy)
		k.reply(m.msgReceipt, "execute_reply", map[string]interface{}{"status": "aborted", "execution_count": k.count})
		k.status(m.msgReceipt, kernelIdle)
	}
}

// evaluate runs the text of a cell: special lines, Go, and the rendering of
// the last value.
func (k *kernel) evaluate(code string) (data Data, failed *cell.Error) {
	rest, expect, specials := cell.Directives(code)
	for _, s := range specials {
		if failed = k.special(s, code); failed != nil {
			break
		}
	}
	if failed == nil {
		var res cell.Result
		if res, failed = k.session.Run(k.count, rest); failed == nil && len(res.Values) > 0 {
			failed = k.session.Guard(func() (failed *cell.Error) {
				data, failed = k.render(res)
				return failed
			})
			if failed != nil && len(failed.Frames) == 0 {
				failed.Frames = k.session.Last()
			}
		}
	}
	switch {
	case expect && failed == nil:
		return Data{}, &cell.Error{
			Name:    "NoError",
			Message: "this cell begins with " + cell.ExpectError + ", but nothing in it failed",
			Frames:  cell.At(k.count, 1, code),
		}
	case expect && !failed.Interrupted:
		fmt.Fprintln(os.Stderr, strings.Join(failed.Traceback(), "\n"))
		return Data{}, nil
	case failed != nil:
		return Data{}, failed
	}
	return data, nil
}

const specialHelp = `
special lines at the top of a cell:
%expect-error         the cell is meant to fail; its error is shown as output
%cd [path]            change the directory
%help                 this text
$command [args...]    run a command (no shell: no quotes, pipes or wildcards)
`

// special runs one special line, most of them as gophernotes does.
func (k *kernel) special(s cell.Special, code string) *cell.Error {
	failed := k.session.Guard(func() *cell.Error {
		switch word := strings.Fields(s.Text)[0]; {
		case word == "%help":
			_, _ = os.Stdout.WriteString(specialHelp) // to our own pipe
		case word == "%cd":
			evalSpecialCommand(k.gn.ir, OutErr{os.Stdout, os.Stderr}, s.Text)
		case word[0] == '$':
			return k.command(strings.Fields(s.Text[1:]))
		case word == cell.ExpectError && s.Text != word:
			return &cell.Error{Name: "SpecialError", Message: fmt.Sprintf("%s takes no argument; write it alone on the first line", word)}
		case word == cell.ExpectError:
			return &cell.Error{Name: "SpecialError", Message: fmt.Sprintf("%s must be the first line of the cell", word)}
		default:
			return &cell.Error{Name: "SpecialError", Message: fmt.Sprintf("unknown special line %q; %%help lists them", s.Text)}
		}
		return nil
	})
	if failed != nil && len(failed.Frames) == 0 {
		failed.Frames = cell.At(k.count, s.Line, code)
	}
	return failed
}

// command runs a program of the operating system; the Stop button ends it.
func (k *kernel) command(words []string) *cell.Error {
	if len(words) == 0 {
		return nil
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return &cell.Error{Name: "CommandError", Message: fmt.Sprintf("%s cannot be started: %v", words[0], err)}
	}
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if k.session.Interrupted() {
					_ = cmd.Process.Kill() // it may have ended by now
					return
				}
			}
		}
	}()
	err := cmd.Wait()
	close(done)
	if k.session.Interrupted() {
		return &cell.Error{Name: "Interrupted", Message: "interrupted", Interrupted: true}
	}
	if err != nil {
		return &cell.Error{Name: "CommandError", Message: fmt.Sprintf("%s: %v", words[0], err)}
	}
	return nil
}

func (k *kernel) userExpressions(exprs map[string]string) map[string]interface{} {
	out := map[string]interface{}{}
	for name, text := range exprs {
		text := text
		failed := k.session.Guard(func() *cell.Error {
			res, failed := k.session.Eval(text)
			if failed != nil {
				return failed
			}
			data, failed := k.render(res)
			if failed != nil {
				return failed
			}
			out[name] = map[string]interface{}{"status": "ok", "data": ensure(data.Data), "metadata": ensure(data.Metadata)}
			return nil
		})
		if failed != nil {
			out[name] = errorContent(failed.Name, failed.Message, failed.Traceback())
		}
	}
	return out
}
