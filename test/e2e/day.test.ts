/**
 * A day of ordinary work: 60 tasks in the mode `auto` with the sandbox that this machine has, and one long task with an interpreter, run by
 * a scripted model through the built program, a real gateway and a real node. Counts the questions that the owner is asked.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { after, before, describe, it, type TestContext } from "node:test";
import { type Client, type FakeModel, Machine, type NodeProcess, startFakeModel, transcript } from "./support.ts";

const MOST_QUESTIONS = 5;
const MOST_FOR_ONE_INTERPRETER = 3;
const STEPS = 63;

type Call = readonly [tool: string, args: object];
const sh = (command: string, more: object = {}): Call => ["laptop__Bash", { command, ...more }];
const on = (tool: "Read" | "Write" | "Edit" | "Glob" | "Grep", args: object): Call => [`laptop__${tool}`, args];
const own = (tool: string, args: object): Call => [`gsv__${tool}`, args];
const ME = "agent:main:cli:dm:plans";
/** What a person asks for in a day, as the calls that a model would make. */
const TASKS: readonly (readonly [task: string, ...calls: Call[]])[] = [
  ["what is here", sh("ls -la")],
  ["which system", sh("uname -a && date")],
  ["begin a project", sh("git init -q . && git config user.email ann@example.org && git config user.name Ann")],
  ["a program", on("Write", { path: "src/sum.sh", content: 'total=0\nfor n in "$@"; do total=$((total + n)); done\necho "$total"\n' })],
  ["a readme", on("Write", { path: "README.md", content: "# Sums\n\nAdds numbers.\n" })],
  ["run it", sh("sh src/sum.sh 1 2 3")],
  ["a test", on("Write", { path: "test/sum.sh", content: '[ "$(sh src/sum.sh 1 2)" = 3 ] && echo passed\n' })],
  ["run the test", sh("sh test/sum.sh")],
  ["a build file", on("Write", { path: "build.sh", content: "mkdir -p build && cp src/sum.sh build/sum && chmod +x build/sum\n" })],
  ["build", sh("sh build.sh")],
  ["run what was built", sh("./build/sum 4 5")],
  ["what is not to be kept", on("Write", { path: ".gitignore", content: "build/\n" })],
  ["status", sh("git status --short")],
  ["keep it", sh("git add -A && git commit -qm 'Sums'")],
  ["the log", sh("git log --oneline")],
  ["read the program", on("Read", { path: "src/sum.sh" })],
  ["better names", on("Edit", { path: "src/sum.sh", oldString: 'echo "$total"', newString: 'printf "%s\\n" "$total"' })],
  ["the difference", sh("git diff --stat")],
  ["does it still work", sh("sh test/sum.sh")],
  ["keep the change", sh("git commit -qam 'Print with printf'")],
  ["where are the shells", on("Glob", { pattern: "**/*.sh" })],
  ["who uses total", on("Grep", { pattern: "total" })],
  ["how long is it", sh("wc -l src/sum.sh test/sum.sh README.md")],
  ["a branch", sh("git checkout -q -b products")],
  ["products", on("Write", { path: "src/product.sh", content: 'total=1\nfor n in "$@"; do total=$((total * n)); done\necho "$total"\n' })],
  ["try it", sh("sh src/product.sh 3 4")],
  ["keep it too", sh("git add -A && git commit -qm 'Products'")],
  ["merge it", sh("git checkout -q - && git merge -q products")],
  ["branches", sh("git branch -v")],
  ["who wrote it", sh("git blame README.md")],
  ["a note for me", own("Remember", { text: "Sums live in src/sum.sh.", where: "today" })],
  ["a longer note", own("WriteFile", { path: "notes/sums.md", content: "# Sums\n- add\n- multiply\n" })],
  ["read my notes", own("ReadFile", { path: "notes/sums.md" })],
  ["add to my notes", own("WriteFile", { path: "notes/sums.md", content: "- divide\n", append: true })],
  ["which notes", own("ListFiles", {})],
  ["find a note", own("Search", { query: "multiply" })],
  ["what did we say", own("SessionsList", {})],
  ["a plan", own("WriteFile", { path: "notes/plan.md", content: "1. sums\n2. products\n" })],
  ["tell my planning conversation", own("SessionSend", { sessionKey: ME, message: "say the sums are done" })],
  ["a table", sh("printf '3,c\\n1,a\\n2,b\\n' > data.csv")],
  ["sort it", sh("sort data.csv")],
  ["the first column", sh("cut -d, -f1 data.csv | sort -n | tail -n 1")],
  ["count words", sh("grep -o '[a-z]' README.md | sort | uniq -c | sort -rn | head -n 3")],
  ["replace in it", sh("sed -i 's/,/;/' data.csv && cat data.csv")],
  ["sum the column", sh("awk -F';' '{ total += $1 } END { print total }' data.csv")],
  ["a copy", sh("cp data.csv data-2.csv && diff data.csv data-2.csv && echo same")],
  ["rename it", sh("mv data-2.csv old.csv")],
  ["remove one file", sh("rm old.csv")],
  ["pack it", sh("tar -czf sums.tgz src README.md && tar -tzf sums.tgz")],
  ["a checksum", sh("sha256sum sums.tgz")],
  ["how large", sh("du -sh .")],
  ["clean the build", sh("rm -rf build")],
  ["build again", sh("sh build.sh && ls build")],
  ["all tests", sh('for t in test/*.sh; do sh "$t"; done')],
  ["longer tests in the background", sh("sleep 0.1; echo done", { background: true })],
  ["the running ones", ["laptop__Process", { action: "list" }]],
  ["keep the data", sh("git add data.csv && git commit -qm 'Data'")],
  ["the newest packages", sh("true", { sandbox: "off" })],
  ["what changed today", sh("git log --stat --since=midnight")],
  ["remember where we are", own("Remember", { text: "Sums and products are built and tested.", where: "today" })],
];
/** Calls that must have worked: a day in which commands fail asks nothing and proves nothing. */
const WORKED = ["passed", "same", "done"] as const;

describe("[PO7] [PO11] [GR6] a day of ordinary work", () => {
  const machine = new Machine();
  let fake: FakeModel;
  let node: NodeProcess;
  let client: Client;
  let tier: string | undefined;
  const questions: { readonly code: string; readonly text: string; readonly why: string }[] = [];

  before(async () => {
    fake = await startFakeModel();
    await machine.up();
    await machine.useModel(fake);
    // As in a new installation.
    await machine.ok("config", "unset", "toolApproval");
    node = await machine.node("laptop");
    const shown = await machine.gsv(["node", "sandbox", "--json", "--workspace", node.workspace]);
    tier = (JSON.parse(shown.stdout) as { tier: string | null }).tier ?? undefined;
    client = await machine.client();
  });
  after(async () => {
    client.close();
    await machine.end();
    await fake.close();
  });
  const skipped = (t: TestContext): boolean => {
    if (tier === undefined) t.skip("this machine has no sandbox");
    return tier === undefined;
  };
  /** Runs a message to its end and answers what is asked. */
  async function run(message: string, answer: string, sessionKey?: string): Promise<void> {
    const runId = await client.say(message, sessionKey === undefined ? {} : { sessionKey });
    const ending = client.ending(runId).then((chat) => chat.state);
    for (let seen = 0; ; ) {
      const asked = client.waitFor("a question", ({ event, payload }) => {
        const { state, code, approval } = payload as { state?: string; code?: string; approval?: { text: string; why: string } };
        if (event !== "approval" || state !== "waiting" || code === undefined || approval === undefined) return undefined;
        return questions.some((known) => known.code === code) ? undefined : { code, text: approval.text, why: approval.why };
      });
      asked.catch(() => undefined);
      const next = await Promise.race([ending, asked]);
      if (typeof next === "string") {
        assert.equal(next, "final", message);
        return;
      }
      assert.ok(++seen < 20, message);
      questions.push(next);
      await client.call("approval.resolve", { code: next.code, decision: answer });
    }
  }

  it(`60 tasks ask at most ${MOST_QUESTIONS} times`, { timeout: 120_000 }, async (t) => {
    if (skipped(t)) return;
    assert.equal(TASKS.length, 60);
    for (const [task, ...calls] of TASKS)
      await run([task, ...calls.map(([tool, args]) => `call ${tool} ${JSON.stringify(args)}`)].join("\n"), "allow");
    for (const { text, why } of questions) t.diagnostic(`asked: ${text.split("\n")[0]} (${why})`);
    t.diagnostic(`${TASKS.length} tasks, ${questions.length} questions, in the sandbox ${tier}`);
    assert.ok(questions.length <= MOST_QUESTIONS, JSON.stringify(questions));
    const said = JSON.stringify(await transcript(client));
    for (const word of WORKED) assert.ok(said.includes(word), word);
    assert.deepEqual(node.lines("data.csv"), ["3;c", "1;a", "2;b"]);
  });

  it(`a task of ${STEPS} calls of one interpreter, with changing arguments, asks at most ${MOST_FOR_ONE_INTERPRETER} times, in mode ask too`, {
    timeout: 120_000,
  }, async (t) => {
    if (skipped(t)) return;
    writeFileSync(node.file("step.sh"), 'echo "$1 $2" >> steps.txt\n');
    for (const mode of ["auto", "ask"] as const) {
      const before = questions.length;
      const sessionKey = `agent:main:cli:dm:steps-${mode}`;
      await client.call("chat.send", { sessionKey, message: `/mode ${mode}` });
      let made = 0;
      // A run has at most 50 steps.
      for (const part of [32, STEPS - 32]) {
        fake.answerSteps((results) =>
          results < part
            ? { toolCalls: [{ name: "laptop__Bash", arguments: JSON.stringify({ command: `sh step.sh --part '${mode} ${made++}'` }) }] }
            : { text: "done" },
        );
        await run("go on", "allow_session", sessionKey);
      }
      fake.answerSteps(undefined);
      t.diagnostic(`${STEPS} calls in mode ${mode}: ${questions.length - before} questions`);
      assert.ok(questions.length - before <= (mode === "auto" ? 0 : MOST_FOR_ONE_INTERPRETER), JSON.stringify(questions));
      const done = node.lines("steps.txt").filter((line) => line.includes(` ${mode} `)).length;
      const results = (await transcript(client, sessionKey))
        .filter(({ role }) => role === "toolResult")
        .map(({ content }) => JSON.stringify(content));
      assert.equal(
        done,
        STEPS,
        results.filter((result) => !result.includes('exitCode\\":0')).join("\n") || "each result says that its command ran",
      );
    }
  });
});
