//go:build cuda

package cuda

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"gorgonia.org/cu"

	"gpunotes/gpukit/internal/driver"
)

// context is one life of a device's primary context, from the first opening to the last Close or to a reset. The openings
// of a device share it.
type context struct {
	ordinal int
	dev     cu.Device
	cu      cu.CUContext

	use  sync.RWMutex // shared in a call, alone in a reset: the driver does not check handles that a reset has freed
	lost atomic.Pointer[driver.Error]

	holders int // openings, each with a reference of the driver's; of primaries
}

var primaries struct {
	sync.Mutex
	of map[int]*context // by ordinal: the ones that can be held
}

// spoiled is what to do where a reset did not help. cuda.h asks for a new process after every error that stays.
const spoiled = "the device cannot be used in this process any more, so restart the program"

// hold gives the primary context of a device to one more opening. One that is lost is reset.
func hold(ordinal int) (*context, error) {
	primaries.Lock()
	defer primaries.Unlock()
	c := primaries.of[ordinal]
	if c != nil && c.lost.Load() != nil {
		c.reset()
		c = nil
	}
	dev, err := cu.GetDevice(ordinal)
	if err != nil {
		return nil, failure("cuDeviceGet", err, "")
	}
	primary, err := dev.RetainPrimaryCtx()
	if err != nil {
		e := failure("cuDevicePrimaryCtxRetain", err, "")
		if fatal(e.Code) {
			e.Detail += "; " + spoiled
		}
		return nil, e
	}
	if c == nil {
		c = &context{ordinal: ordinal, dev: dev, cu: primary}
		if primaries.of == nil {
			primaries.of = map[int]*context{}
		}
		primaries.of[ordinal] = c
	}
	c.holders++
	return c, nil
}

// release ends a hold. A lost context is reset, so that the device can be opened anew.
func (c *context) release() error {
	primaries.Lock()
	defer primaries.Unlock()
	if c.holders == 0 { // after a reset nobody holds it
		return nil
	}
	if c.lost.Load() != nil {
		return c.reset()
	}
	c.holders--
	if c.holders == 0 {
		delete(primaries.of, c.ordinal)
	}
	if err := c.dev.ReleasePrimaryCtx(); err != nil {
		return failure("cuDevicePrimaryCtxRelease", err, "")
	}
	return nil
}

// reset ends the life of a lost context for all its holders and gives back their references, so that the next hold makes
// it anew. primaries is locked.
func (c *context) reset() error {
	c.use.Lock()
	defer c.use.Unlock()
	delete(primaries.of, c.ordinal)
	err := c.dev.ResetPrimaryCtx()
	for ; c.holders > 0; c.holders-- {
		c.dev.ReleasePrimaryCtx() // what it returns is the error that the context was lost by
	}
	if err != nil && !fatal(codeOf(err)) {
		return failure("cuDevicePrimaryCtxReset", err, "")
	}
	return nil
}

// do runs f on a thread on which the context is current. f must not come here again.
func (c *context) do(call string, f func() error) error {
	c.use.RLock()
	defer c.use.RUnlock()
	if err := c.usable(call); err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.SetCurrentContext(c.cu); err != nil {
		return c.failed("cuCtxSetCurrent", err, "")
	}
	return f()
}

// usable is nil while the context is not lost, then the error that it was lost by, as one of this call.
func (c *context) usable(call string) error {
	if e := c.lost.Load(); e != nil {
		return &driver.Error{Call: call, Code: e.Code, Detail: fmt.Sprintf("%s failed before: %s", e.Call, e.Detail), Place: e.Place, Cause: e.Cause}
	}
	return nil
}

// failed is failure, and makes the context lost if it is of no use any more.
func (c *context) failed(call string, err error, detail string) *driver.Error {
	e := failure(call, err, detail)
	if fatal(e.Code) {
		c.lost.CompareAndSwap(nil, e)
	}
	return e
}
