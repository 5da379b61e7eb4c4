package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"skep/engine/judge"
	"skep/problems"
)

// evalReport is what eval and verify print with --json; the names are a contract (DESIGN.md §10).
type evalReport struct {
	Verdict problems.Outcome  `json:"verdict"`
	Message string            `json:"message"`
	Value   *float64          `json:"value"`
	Claim   *float64          `json:"claim"`
	Score   *float64          `json:"score"` // numbers.search_score
	Strict  *bool             `json:"strict"`
	Numbers problems.Numbers  `json:"numbers"`
	Margins []problems.Margin `json:"margins"`
	Seconds float64           `json:"seconds"`
	Tier    *string           `json:"tier"` // null: nothing was run
}

func newEvalReport(v problems.Verdict, seconds float64, tier string) evalReport {
	r := evalReport{
		Verdict: v.Outcome, Message: v.Message, Value: v.Value, Claim: v.Claim, Score: v.Numbers.SearchScore,
		Strict: v.Strict, Numbers: v.Numbers, Margins: v.Margins, Seconds: seconds,
	}
	if tier != "" {
		r.Tier = &tier
	}
	if r.Margins == nil {
		r.Margins = []problems.Margin{}
	}
	return r
}

// text is the report for people, on a few lines.
func (r evalReport) text(w io.Writer, problem string) {
	fmt.Fprintf(w, "%s: %s", problem, r.Verdict)
	if r.Score != nil {
		fmt.Fprintf(w, ", score %.7g", *r.Score)
	}
	if r.Value != nil {
		fmt.Fprintf(w, ", value %.10g", *r.Value)
	}
	if r.Strict != nil && *r.Strict {
		fmt.Fprint(w, ", exactly feasible")
	}
	fmt.Fprintf(w, ", %.2f s", r.Seconds)
	if r.Tier != nil {
		fmt.Fprintf(w, ", sandbox tier %s", *r.Tier)
	}
	fmt.Fprintf(w, "\n  %s\n", r.Message)
	for _, m := range r.Margins {
		fmt.Fprintf(w, "  slack of %s: %.3g (%s)\n", m.Family, m.Slack, m.At)
	}
}

// judgeFlags are the flags of commands that open a judge.
func judgeFlags(fs *flag.FlagSet) *judge.Options {
	o := &judge.Options{}
	fs.StringVar(&o.Python, "python", "", "Python for candidates, used as it is (default: skep makes its own)")
	fs.StringVar(&o.Tier, "sandbox", "strict", "sandbox tier: strict or C")
	fs.IntVar(&o.Evaluators, "evaluators", 0, "programs judged at a time (default: cores, at most 8)")
	return o
}

// cmdEval runs one program, or every initial program, and prints the verdict. A program that fails is work done.
func cmdEval(ctx context.Context, args []string, io stdio) error {
	fs := flag.NewFlagSet("eval", flag.ContinueOnError)
	asJSON := fs.Bool("json", false, "one JSON document on stdout")
	options := judgeFlags(fs)
	rest, err := parse(fs, args, io, 1, 2)
	if err != nil {
		return err
	}
	if rest[0] == "all" && len(rest) == 1 {
		return evalAll(ctx, options, *asJSON, io)
	}
	problem, err := problems.Get(rest[0])
	if err != nil {
		return err
	}
	if len(rest) != 2 {
		return fmt.Errorf("%w: eval needs a program: skep eval %s FILE.py", errUsage, rest[0])
	}
	code, err := readInput(rest[1], 64<<20)
	if err != nil {
		return err
	}
	j, err := openJudge(ctx, options, io)
	if err != nil {
		return err
	}
	defer j.Close()
	report, err := evaluate(ctx, j, problem, string(code))
	if err != nil {
		return err
	}
	if *asJSON {
		return printJSON(io.Out, report)
	}
	report.text(io.Out, problem.Info().Name)
	return nil
}

// evalAll judges the initial program of every problem.
func evalAll(ctx context.Context, options *judge.Options, asJSON bool, io stdio) error {
	j, err := openJudge(ctx, options, io)
	if err != nil {
		return err
	}
	defer j.Close()
	type row struct {
		Problem string `json:"problem"`
		evalReport
	}
	rows := []row{}
	for _, p := range problems.All() {
		report, err := evaluate(ctx, j, p, p.Initial())
		if err != nil {
			return err
		}
		rows = append(rows, row{p.Info().Name, report})
		if !asJSON {
			report.text(io.Out, p.Info().Name)
		}
	}
	if asJSON {
		return printJSON(io.Out, rows)
	}
	return nil
}

// openJudge opens a judge and shows on stderr how its Python environment is made.
func openJudge(ctx context.Context, options *judge.Options, io stdio) (*judge.Judge, error) {
	options.Progress = func(line string) { fmt.Fprintln(io.Err, line) }
	return judge.Open(ctx, *options)
}

func evaluate(ctx context.Context, j *judge.Judge, p problems.Problem, code string) (evalReport, error) {
	result, err := j.Evaluate(ctx, p, code)
	if err != nil {
		return evalReport{}, err
	}
	verdict := result.Verdict
	verdict.Outcome, verdict.Message = result.Outcome, result.Message
	return newEvalReport(verdict, result.Wall.Round(time.Microsecond).Seconds(), result.Tier), nil
}
