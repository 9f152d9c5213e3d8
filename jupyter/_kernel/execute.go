//go:build go1.21

package main

import "gpunotes/jupyter/cell"

type executeRequest struct {
	Code            string            `json:"code"`
	Silent          bool              `json:"silent"`
	StoreHistory    *bool             `json:"store_history"`
	UserExpressions map[string]string `json:"user_expressions"`
	StopOnError     *bool             `json:"stop_on_error"`
	AllowStdin      bool              `json:"allow_stdin"`
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
	k.current, k.mayAsk = &r, req.AllowStdin
	k.shown = map[string]bool{}
	k.mu.Unlock()
	k.session.Own(&ownText{r: &r})
	k.pages = nil
	if !req.Silent {
		if err := r.PublishExecutionInput(k.count, req.Code); err != nil {
			logger.Println("execute_input not sent:", err)
		}
	}

	data, failed := k.evaluate(req.Code)
	k.endBars()
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
		"payload":          k.payload(),
	})
}

// fail shows why a cell stopped, and drops the cells that wait behind it.
func (k *kernel) fail(r msgReceipt, req executeRequest, failed *cell.Error) {
	failed.Message = cell.PlainTypes(failed.Message)
	k.showError(r, failed)
	var aborted []message
	if req.StopOnError == nil || *req.StopOnError {
		aborted = k.takeExecutes()
	}
	k.replyError(r, failed)
	k.abort(aborted)
}

// showError publishes why a cell stopped.
func (k *kernel) showError(r msgReceipt, failed *cell.Error) {
	if err := r.Publish("error", map[string]interface{}{
		"ename": failed.Name, "evalue": failed.Message, "traceback": failed.Traceback(),
	}); err != nil {
		logger.Println("error not sent:", err)
	}
}

// replyError answers the request of the cell.
func (k *kernel) replyError(r msgReceipt, failed *cell.Error) {
	content := errorContent(failed.Name, failed.Message, failed.Traceback())
	content["execution_count"] = k.count
	content["user_expressions"] = map[string]interface{}{}
	content["payload"] = []interface{}{}
	k.reply(r, "execute_reply", content)
}

// abort answers cells that are not run.
func (k *kernel) abort(list []message) {
	for _, m := range list {
		k.status(m.msgReceipt, kernelBusy)
		k.reply(m.msgReceipt, "execute_reply", map[string]interface{}{"status": "aborted", "execution_count": k.count})
		k.status(m.msgReceipt, kernelIdle)
		k.journal.write(note{Kind: "done", ID: m.id})
	}
}

func (k *kernel) userExpressions(exprs map[string]string) map[string]interface{} {
	out := map[string]interface{}{}
	for name, text := range exprs {
		text := text
		data := new(Data)
		failed := k.session.Guard(func() *cell.Error {
			res, failed := k.session.Eval(text)
			if failed == nil {
				*data, failed = k.render(res)
			}
			return failed
		})
		out[name] = map[string]interface{}{"status": "ok", "data": ensure(data.Data), "metadata": ensure(data.Metadata)}
		if failed != nil {
			out[name] = errorContent(failed.Name, failed.Message, failed.Traceback())
		}
	}
	return out
}
