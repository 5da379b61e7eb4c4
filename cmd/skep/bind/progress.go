package bind

import (
	"context"

	"skep/kernel/display"
)

func withProgress(ctx context.Context) (context.Context, func()) { return ctx, func() {} }

func renderPlot(v any) (display.Data, bool) { return display.Data{}, false }
