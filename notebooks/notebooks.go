// Package notebooks holds the notebooks that come with skep. It deliberately knows nothing of what runs them.
package notebooks

import "embed"

// Files are the notebooks by name; 01_first_round.ipynb is the one that skep demo runs.
//
//go:embed *.ipynb
var Files embed.FS
