package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"skep/cmd/skep/page"
	"skep/engine/store"
	"skep/plotting"
)

// cmdReport writes a page and pictures of a stored run. It only reads the run, also one that is being written.
func cmdReport(ctx context.Context, args []string, io stdio) error {
	fs := flag.NewFlagSet("report", flag.ContinueOnError)
	out := fs.String("out", "", "folder for the report; default: report in the run's folder")
	rest, err := parse(fs, args, io, 1, 1)
	if err != nil {
		return err
	}
	dir := rest[0]
	if *out == "" {
		*out = filepath.Join(dir, "report")
	}
	run, err := readRun(ctx, dir)
	if err != nil {
		return err
	}
	path, err := writeReport(run, *out)
	if err != nil {
		return err
	}
	fmt.Fprintln(io.Out, path)
	return nil
}

// readRun reads the run in dir.
func readRun(ctx context.Context, dir string) (run storedRun, err error) {
	r, err := store.View(dir)
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return loadRun(ctx, r)
}

// writeReport writes report.html and its pictures as PNG into folder out, and returns the path of the page.
func writeReport(run storedRun, out string) (string, error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", fmt.Errorf("make the report's folder: %w; --out names another", err)
	}
	pictures := run.pictures()
	for _, p := range pictures {
		if err := p.figure.Save(filepath.Join(out, p.name+".png")); err != nil {
			return "", fmt.Errorf("%w; --out names another folder", err)
		}
	}
	var html bytes.Buffer
	if err := renderReport(&html, run, pictures); err != nil {
		return "", err
	}
	path := filepath.Join(out, "report.html")
	if err := os.WriteFile(path, html.Bytes(), 0o644); err != nil {
		return "", fmt.Errorf("write the report: %w; --out names another folder", err)
	}
	return path, nil
}

// picture is a figure of the report and the name of its file.
type picture struct {
	name   string
	figure *plotting.Figure
}

// renderReport writes the page.
func renderReport(w io.Writer, run storedRun, pictures []picture) error {
	body, err := reportBody(run, pictures)
	if err != nil {
		return err
	}
	footer := fmt.Sprintf("Run %s, written by skep %s; this page by skep %s.", run.meta.RunID, run.meta.SkepVersion, version)
	return page.Write(w, page.Document{Title: run.title(), Footer: footer, Body: body})
}
