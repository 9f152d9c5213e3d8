//go:build go1.21

package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	"gpunotes/jupyter/cell"
)

var shellHandlers, controlHandlers map[string]func(*kernel, msgReceipt)

func init() {
	shellHandlers = map[string]func(*kernel, msgReceipt){
		"execute_request":     (*kernel).execute,
		"kernel_info_request": (*kernel).info,
		"is_complete_request": (*kernel).isComplete,
		"complete_request":    (*kernel).complete,
		"inspect_request":     (*kernel).inspect,
		"history_request":     (*kernel).showHistory,
		"comm_info_request":   (*kernel).commInfo,
		"comm_open":           (*kernel).commOpen,
		"comm_msg":            (*kernel).ignore,
		"comm_close":          (*kernel).ignore,
		"interrupt_request":   (*kernel).interrupt,
		"shutdown_request":    (*kernel).shutdown,
	}
	controlHandlers = map[string]func(*kernel, msgReceipt){
		"kernel_info_request": (*kernel).info,
		"interrupt_request":   (*kernel).interrupt,
		"shutdown_request":    (*kernel).shutdown,
	}
}

func (k *kernel) ignore(msgReceipt) {}

func (k *kernel) info(r msgReceipt) {
	k.reply(r, "kernel_info_reply", map[string]interface{}{
		"status":                 "ok",
		"protocol_version":       ProtocolVersion,
		"implementation":         "gophernotes",
		"implementation_version": Version,
		"banner":                 fmt.Sprintf("Go (gpunotes): gophernotes %s with gpukit, %s", Version, runtime.Version()),
		"language_info": map[string]interface{}{
			"name":               "go",
			"version":            runtime.Version(),
			"mimetype":           "text/x-go",
			"file_extension":     ".go",
			"pygments_lexer":     "go",
			"codemirror_mode":    "go",
			"nbconvert_exporter": "",
		},
		"help_links": []helpLink{
			{Text: "Go", URL: "https://go.dev/"},
			{Text: "gophernotes", URL: "https://github.com/gopherdata/gophernotes"},
		},
	})
}

func (k *kernel) interrupt(r msgReceipt) {
	k.session.Interrupt()
	k.reply(r, "interrupt_reply", map[string]string{"status": "ok"})
}

func (k *kernel) shutdown(r msgReceipt) {
	var req shutdownReply
	decode(r, &req)
	k.reply(r, "shutdown_reply", map[string]interface{}{"status": "ok", "restart": req.Restart})
	if err := r.Publish("shutdown_reply", map[string]interface{}{"status": "ok", "restart": req.Restart}); err != nil {
		logger.Println("shutdown not announced:", err)
	}
	k.status(r, kernelIdle)
	k.journal.write(note{Kind: "bye"})
	time.Sleep(100 * time.Millisecond) // the sockets send in the background
	os.Exit(0)
}

func (k *kernel) isComplete(r msgReceipt) {
	var req struct {
		Code string `json:"code"`
	}
	decode(r, &req)
	status, indent := cell.Complete(req.Code)
	reply := map[string]string{"status": status}
	if status == "incomplete" {
		reply["indent"] = indent
	}
	k.reply(r, "is_complete_reply", reply)
}

type cursorRequest struct {
	Code   string `json:"code"`
	Cursor int    `json:"cursor_pos"`
}

func (k *kernel) complete(r msgReceipt) {
	var req cursorRequest
	decode(r, &req)
	names, start, end := k.session.Completions(req.Code, req.Cursor)
	if names == nil {
		names = []string{}
	}
	k.reply(r, "complete_reply", map[string]interface{}{
		"status": "ok", "matches": names, "cursor_start": start, "cursor_end": end, "metadata": map[string]string{},
	})
}

func (k *kernel) inspect(r msgReceipt) {
	var req cursorRequest
	decode(r, &req)
	data, found := k.describe(req.Code, req.Cursor)
	if !found {
		data = map[string]string{}
	}
	k.reply(r, "inspect_reply", map[string]interface{}{
		"status": "ok", "found": found, "data": data, "metadata": map[string]string{},
	})
}

// historyEntry is a cell that was executed in this session.
type historyEntry struct {
	count int
	code  string
}

// showHistory knows this session only, which it numbers 1 (and 0, for "the
// current one", in requests).
func (k *kernel) showHistory(r msgReceipt) {
	var req struct {
		Output  bool   `json:"output"`
		Type    string `json:"hist_access_type"`
		Session int    `json:"session"`
		Start   int    `json:"start"`
		Stop    *int   `json:"stop"`
		N       int    `json:"n"`
		Pattern string `json:"pattern"`
		Unique  bool   `json:"unique"`
	}
	decode(r, &req)
	list := []interface{}{}
	seen := map[string]bool{}
	for _, e := range k.history {
		switch req.Type {
		case "range":
			if req.Session != 0 && req.Session != 1 || e.count < req.Start || req.Stop != nil && e.count >= *req.Stop {
				continue
			}
		case "search":
			if !glob(req.Pattern).MatchString(e.code) || req.Unique && seen[e.code] {
				continue
			}
		}
		seen[e.code] = true
		if req.Output {
			list = append(list, []interface{}{1, e.count, []interface{}{e.code, nil}})
		} else {
			list = append(list, []interface{}{1, e.count, e.code})
		}
	}
	if n := req.N; n > 0 && len(list) > n && req.Type != "range" {
		list = list[len(list)-n:]
	}
	k.reply(r, "history_reply", map[string]interface{}{"status": "ok", "history": list})
}

// glob turns the pattern of a history search, with * and ?, into a regular
// expression for whole cells.
func glob(pattern string) *regexp.Regexp {
	s := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile("(?s)^" + s + "$")
}

func (k *kernel) commInfo(r msgReceipt) {
	k.reply(r, "comm_info_reply", map[string]interface{}{"status": "ok", "comms": map[string]string{}})
}

// commOpen closes what it cannot serve, as the protocol asks.
func (k *kernel) commOpen(r msgReceipt) {
	var req struct {
		ID string `json:"comm_id"`
	}
	decode(r, &req)
	if err := r.Publish("comm_close", map[string]interface{}{"comm_id": req.ID, "data": map[string]string{}}); err != nil {
		logger.Println("comm_close not sent:", err)
	}
}
