package main

// commands is the table of verbs, in the order that help prints them.
func commands() []command {
	return []command{
		{"demo", "[--model M] [--dir D]", "set everything up and run a real search in a notebook", cmdDemo},
		{"problems", "[--json]", "list the problems", cmdProblems},
		{"eval", "PROBLEM FILE.py | all [--json] [--evaluators N] [--sandbox TIER]", "run a program behind walls and judge it", cmdEval},
		{"verify", "PROBLEM FILE.json [--json]", "judge numbers alone", cmdVerify},
		{"doctor", "[--json]", "which walls and which Python this machine has", cmdDoctor},
		{"run", "PROBLEM --rounds N | --minutes T [--dir D] [--json]", "search in the terminal", cmdRun},
		{"report", "DIR [--out FOLDER]", "a page and pictures of a stored run", cmdReport},
		{"exec", "NOTEBOOK.ipynb [--out FILE] [--timeout T]", "run a notebook and keep its outputs", cmdExec},
		{"install", "[--user | --sys-prefix | --prefix FOLDER]", "register the kernel with Jupyter", cmdInstall},
		{"kernel", "-f FILE", "the Jupyter kernel, started by a Jupyter server", cmdKernel},
		{"session", "", "the process that runs a kernel's cells, started by it", cmdSession},
		{"pull", "MODEL [--dir D] [--offline] [--json]", "fetch a model: a known name, a Hugging Face repository, a URL", cmdPull},
		{"generate", "[--model M] [--prompt-file F] [--chat] [--json]", "continue a prompt", cmdGenerate},
		{"bench", "NAME [--json]", "measure this machine", cmdBench},
	}
}
