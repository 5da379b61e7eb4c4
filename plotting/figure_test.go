package plotting_test

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"flag"
	"image"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"skep/plotting"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

var update = flag.Bool("update", false, "write the golden pictures instead of comparing with them: look at them before committing")

// TestGolden compares the examples with the pictures that a person has looked at. Rounding may differ between
// machines, so a few pixels on edges may differ by a little; a moved mark changes many by a lot.
func TestGolden(t *testing.T) {
	for name, figure := range map[string]*plotting.Figure{
		"trajectory": plotting.Trajectory(twoRounds()),
		"minutes":    plotting.TrajectoryBy(twoRounds(), plotting.TrajectoryOptions{Axis: "minutes"}),
		"empty":      plotting.Trajectory(history{}),
		"clusters":   plotting.Clusters(petals()),
		"shapes":     plotting.Shapes(hexagonal()),
		"stages":     plotting.StageTimes(stageTimes()),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name+".png")
			got := figure.PNG(96)
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if differ, of := pixelsApart(t, got, want, 24); float64(differ) > 0.0005*float64(of) {
				saved := filepath.Join(t.ArtifactDir(), name+".png")
				_ = os.WriteFile(saved, got, 0o644)
				t.Errorf("%d of %d pixels differ from %s; the new picture is %s (go test -artifacts keeps it)", differ, of, path, saved)
			}
		})
	}
}

// pixelsApart counts the pixels of two PNGs that differ by more than tolerance (of 255) in a channel.
func pixelsApart(t *testing.T, a, b []byte, tolerance int) (differ, of int) {
	t.Helper()
	decode := func(data []byte) image.Image {
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	x, y := decode(a), decode(b)
	if x.Bounds() != y.Bounds() {
		t.Fatalf("sizes differ: %v and %v", x.Bounds(), y.Bounds())
	}
	for row := range x.Bounds().Dy() {
		for col := range x.Bounds().Dx() {
			r1, g1, b1, _ := x.At(col, row).RGBA()
			r2, g2, b2, _ := y.At(col, row).RGBA()
			apart := max(r1, r2) - min(r1, r2)
			apart = max(apart, max(g1, g2)-min(g1, g2), max(b1, b2)-min(b1, b2))
			if int(apart>>8) > tolerance {
				differ++
			}
		}
	}
	return differ, x.Bounds().Dx() * x.Bounds().Dy()
}

// elements parses an SVG strictly and counts its elements and the text within <title>.
func elements(t *testing.T, svg []byte) (count map[string]int, titles []string) {
	t.Helper()
	count = map[string]int{}
	dec, open := xml.NewDecoder(bytes.NewReader(svg)), []string{}
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return count, titles
		}
		if err != nil {
			t.Fatalf("not well-formed XML: %v\n%.400s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			count[token.Name.Local]++
			open = append(open, token.Name.Local)
			for _, a := range token.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Fatalf("attribute %s of <%s> is %q", a.Name.Local, token.Name.Local, a.Value)
				}
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 && open[len(open)-1] == "title" {
				titles = append(titles, string(token))
			}
		}
	}
}

func TestSVGHover(t *testing.T) {
	_, titles := elements(t, plotting.Trajectory(twoRounds()).SVG())
	if len(titles) != len(twoRounds()) {
		t.Errorf("%d hover titles, want one for each of %d programs", len(titles), len(twoRounds()))
	}
	all := strings.Join(titles, "\n")
	for _, want := range []string{"program 3: hybridize, round 1, exception", "program 9: hybridize, round 2, score 0.74"} {
		if !strings.Contains(all, want) {
			t.Errorf("no hover title %q in:\n%s", want, all)
		}
	}
}

func TestSVGFonts(t *testing.T) {
	svg := string(plotting.Trajectory(twoRounds()).SVG())
	if n, all := strings.Count(svg, "font-family:Liberation Sans, Arial, Helvetica, sans-serif;"), strings.Count(svg, "font-family:"); n != all || n == 0 {
		t.Errorf("%d of %d texts name fonts to fall back on", n, all)
	}
}

// TestHostileText puts markup, control characters, broken UTF-8 and the marks that svg.go uses itself into every text.
func TestHostileText(t *testing.T) {
	evil := "</title></svg><script>alert(1)</script> & \x00\x02" + "0\x03 \x1b[31m \xff\ufffe \u202e ]]> \"'"
	scene := hexagonal()
	scene.Title, scene.Caption, scene.Circles[0].Label, scene.Circles[1].Label = evil, evil, evil, "\x020"
	clusters := petals()
	clusters.Title, clusters.Caption, clusters.By = evil, evil, evil
	clusters.Points[0].Group, clusters.Points[1].Label = evil, evil
	points := twoRounds()
	points[3].Source, points[2].Outcome = evil, evil
	for name, figure := range map[string]*plotting.Figure{
		"shapes":     plotting.Shapes(scene),
		"clusters":   plotting.Clusters(clusters),
		"trajectory": plotting.Trajectory(points),
		"axis":       plotting.TrajectoryBy(points, plotting.TrajectoryOptions{Axis: evil}),
		"bars":       plotting.Bars(plotting.BarData{Title: evil, Axis: evil, Bars: []plotting.Bar{{Label: evil, Value: 1, Note: evil}}}),
	} {
		count, _ := elements(t, figure.SVG())
		if count["script"] != 0 || count["svg"] != 1 {
			t.Errorf("%s: a text became markup: %v", name, count)
		}
		figure.PNG(40)
	}
}

// TestHostileNumbers draws every figure with numbers that break arithmetic.
func TestHostileNumbers(t *testing.T) {
	special := []float64{0, math.Copysign(0, -1), 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e308, -1e308, 5e-324, 1e-300, 1e150, 1e16, 1 + 1e-16}
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 7))
		pick := func() float64 { return special[r.IntN(len(special))] }
		n := r.IntN(5)
		var points history
		var scene plotting.Scene
		var clusters plotting.ClusterData
		var bars plotting.BarData
		var times []plotting.StageTime
		dim := r.IntN(4)
		for i := range n {
			points = append(points, plotting.Point{Program: r.IntN(3), Seconds: pick(), Source: "tuner", Score: pick(), Best: pick()})
			scene.Circles = append(scene.Circles, plotting.Circle{X: pick(), Y: pick(), R: pick()})
			scene.Sites = append(scene.Sites, plotting.Site{X: pick(), Y: pick()})
			scene.Segments = append(scene.Segments, plotting.Segment{X1: pick(), Y1: pick(), X2: pick(), Y2: pick()})
			scene.Polygons = append(scene.Polygons, plotting.Polygon{Points: [][2]float64{{pick(), pick()}, {pick(), pick()}, {pick(), pick()}}, Outline: r.IntN(2) == 0})
			x := make([]float64, dim)
			for j := range x {
				x[j] = pick()
			}
			clusters.Points = append(clusters.Points, plotting.ClusterPoint{X: x, Group: string(rune('a' + i%2))})
			bars.Bars = append(bars.Bars, plotting.Bar{Label: "bar", Value: pick()})
			times = append(times, plotting.StageTime{Stage: "Read", Seconds: pick()})
		}
		if dim > 0 && r.IntN(2) == 0 {
			clusters.Centre = make([]float64, r.IntN(4))
			for j := range clusters.Centre {
				clusters.Centre[j] = pick()
			}
		}
		for _, figure := range []*plotting.Figure{
			plotting.Trajectory(points), plotting.TrajectoryBy(points, plotting.TrajectoryOptions{Axis: "minutes"}),
			plotting.Shapes(scene), plotting.Clusters(clusters), plotting.Bars(bars), plotting.StageTimes(times),
		} {
			elements(t, figure.SVG())
			if seed%6 == 0 { // pixels are slow
				figure.PNG(10)
			}
			if t.Failed() {
				t.Fatalf("seed %d, figure %q", seed, figure.Title)
			}
		}
	}
}

func TestNewKeepsThePlotsOwnChoices(t *testing.T) {
	p := plot.New()
	p.Title.Text = "from the plot"
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 2, 3, 5, 7
	p.X.Tick.Marker = plot.ConstantTicks{{Value: 2.5, Label: "half"}}
	figure := plotting.New(p, 4*vg.Inch, 3*vg.Inch, "", "")
	svg := string(figure.SVG())
	if figure.Title != "from the plot" || !strings.Contains(svg, ">half<") || !strings.Contains(svg, ">5.5<") {
		t.Errorf("title %q; own ticks on x and house ticks on y in:\n%s", figure.Title, svg)
	}
}

func TestSave(t *testing.T) {
	figure, dir := plotting.Shapes(hexagonal()), t.TempDir()
	for name, magic := range map[string]string{"a.svg": "<?xml", "b.PNG": "\x89PNG"} {
		path := filepath.Join(dir, name)
		if err := figure.Save(path); err != nil {
			t.Fatal(err)
		}
		if data, _ := os.ReadFile(path); !bytes.HasPrefix(data, []byte(magic)) {
			t.Errorf("%s begins with %.8q, want %q", name, data, magic)
		}
	}
	if err := figure.Save(filepath.Join(dir, "d.pdf")); err == nil || !strings.Contains(err.Error(), ".svg") {
		t.Errorf("an unknown extension gives %v, want an error that lists the known ones", err)
	}
	if err := figure.Save(filepath.Join(dir, "no", "such", "folder.svg")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder gives %v, want os.ErrNotExist", err)
	}
}

// TestRenderSizes checks that the PNG shown at the size in the metadata has as many CSS pixels as the SVG has.
func TestRenderSizes(t *testing.T) {
	figure := plotting.Trajectory(twoRounds())
	bundle := figure.Render()
	size := bundle.Metadata["image/png"].(map[string]any)
	config, err := png.DecodeConfig(bytes.NewReader(bundle.Data["image/png"].([]byte)))
	if err != nil {
		t.Fatal(err)
	}
	for _, side := range []struct {
		name           string
		pixels, shown  int
		points, perDot float64
	}{
		{"width", config.Width, size["width"].(int), figure.Width.Points(), 96.0 / 72},
		{"height", config.Height, size["height"].(int), figure.Height.Points(), 96.0 / 72},
	} {
		if math.Abs(float64(side.pixels)/2-float64(side.shown)) > 1 || math.Abs(side.points*side.perDot-float64(side.shown)) > 1 {
			t.Errorf("%s: %d pixels at twice the density, shown as %d, SVG has %.2f points", side.name, side.pixels, side.shown, side.points)
		}
	}
	if text := bundle.Data["text/plain"].(string); !strings.HasPrefix(text, figure.Title+"\n") {
		t.Errorf("text/plain is %q", text)
	}
	if !strings.HasPrefix(figure.Inline(), "<svg ") {
		t.Errorf("Inline begins with %.20q", figure.Inline())
	}
}

func TestConcurrentRender(t *testing.T) {
	figure := plotting.Clusters(petals())
	want := figure.SVG()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if !bytes.Equal(figure.SVG(), want) {
				t.Error("the same figure drew another picture")
			}
			figure.PNG(30)
		})
	}
	all.Wait()
}

// TestEmbed: the image carries the figure's SVG, at its size, and its text can't leave the attribute.
func TestEmbed(t *testing.T) {
	scene := hexagonal()
	scene.Title = `"><script>alert(1)</script>`
	figure := plotting.Shapes(scene)
	var image struct {
		Src    string `xml:"src,attr"`
		Alt    string `xml:"alt,attr"`
		Width  int    `xml:"width,attr"`
		Height int    `xml:"height,attr"`
	}
	if err := xml.Unmarshal([]byte(strings.TrimSuffix(figure.Embed(), ">")+"/>"), &image); err != nil {
		t.Fatal(err)
	}
	data, ok := strings.CutPrefix(image.Src, "data:image/svg+xml;base64,")
	svg, err := base64.StdEncoding.DecodeString(data)
	if !ok || err != nil || !bytes.Equal(svg, figure.SVG()) {
		t.Errorf("the image carries %.60q, %v", image.Src, err)
	}
	if ratio := float64(image.Width) / float64(image.Height); image.Alt != scene.Title || math.Abs(ratio-float64(figure.Width/figure.Height)) > 0.01 {
		t.Errorf("alt %q, %d × %d pixels", image.Alt, image.Width, image.Height)
	}
}
