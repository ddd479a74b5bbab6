/**
 * Hosts for commands in the sandbox, with the built program, a real gateway and real nodes: refused by name, asked for, allowed. One
 * node has bubblewrap, which can let single hosts through; the other one has Landlock alone, which can't.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { delimiter, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type FakeModel, Machine, type NodeProcess, startFakeModel, until } from "./support.ts";

interface Waiting {
  readonly code: string;
  readonly text: string;
  readonly why: string;
  readonly choices?: readonly { readonly answer: string; readonly text: string }[];
}
interface Shown {
  readonly tier: string | null;
  readonly network: readonly string[] | null;
}
/** Programs that the commands of these tests run; without the folder of `bwrap` in PATH a node has Landlock alone. */
const PROGRAMS = ["sh", "bash", "cat", "printf", "true"];

describe("hosts for commands in the sandbox", () => {
  const machine = new Machine();
  let fake: FakeModel;
  let node: NodeProcess;
  let server: Server;
  /** Of the server. An address of this machine is reached only because `network` in node.toml lists it. */
  let host: string;
  let shown: Shown;
  let plain: Readonly<Record<string, string>>;
  const SESSION = "agent:main:cli:dm:hosts";
  const OTHER = "agent:main:cli:dm:elsewhere";
  /** Sends a request to the proxy, as programs do that know `HTTP_PROXY`, and keeps the answer in a file. */
  const request = (name: string, more: object = {}): string => {
    const text = `GET http://${name}/ HTTP/1.1\\r\\nHost: ${name}\\r\\n\\r\\n`;
    const command = `bash -c 'exec 3<>/dev/tcp/127.0.0.1/\${HTTP_PROXY##*:}; printf "${text}" >&3; cat <&3 >answer.txt'`;
    return `call laptop__Bash ${JSON.stringify({ command, ...more })}`;
  };
  const withHosts = (...hosts: string[]) => ({ sandbox: "workspace+net", hosts });
  const chat = (message: string, session = SESSION) => machine.gsv(["chat", "--session", session, message]);
  const answer = (): string => readFileSync(node.file("answer.txt"), "utf8");
  const told = (): string => JSON.stringify(fake.requests.at(-1));
  const waiting = async (): Promise<readonly Waiting[]> =>
    (JSON.parse(await machine.ok("approval", "list", "--json")) as { approvals: readonly Waiting[] }).approvals;
  async function asked(message: string, session = SESSION): Promise<Waiting> {
    const { code, stdout, stderr } = await chat(message, session);
    assert.equal(code, 5, `${stdout}\n${stderr}`);
    const [open, ...more] = await waiting();
    assert.equal(more.length, 0);
    return open ?? assert.fail();
  }
  async function ended(session = SESSION): Promise<void> {
    await until("the run ends", async () => {
      const stats = JSON.parse(await machine.ok("session", "stats", session, "--json")) as { isProcessing: boolean };
      return !stats.isProcessing;
    });
  }
  async function deny({ code }: Waiting, session = SESSION): Promise<void> {
    await machine.ok("approval", "deny", code);
    await ended(session);
  }

  before(async () => {
    server = createServer((_, response) => response.end("from outside"));
    await new Promise<void>((done) => server.listen(0, "127.0.0.2", done));
    const address = server.address();
    assert(address !== null && typeof address === "object");
    host = `127.0.0.2:${address.port}`;
    fake = await startFakeModel();
    await machine.up();
    await machine.useModel(fake);
    await machine.ok("config", "set", "toolApproval", JSON.stringify({ mode: "auto" }));
    writeFileSync(join(machine.configFolder, "node.toml"), `network = ["${host}"]\n`, { mode: 0o600 });
    node = await machine.node("laptop");
    const run = await machine.gsv(["node", "sandbox", "--json", "--workspace", node.workspace]);
    shown = JSON.parse(run.stdout) as Shown;
    const folder = join(machine.folder, "programs");
    mkdirSync(folder);
    const search = (process.env["PATH"] ?? "").split(delimiter);
    for (const name of PROGRAMS) {
      const found = search.map((at) => join(at, name)).find((path) => existsSync(path));
      symlinkSync(found ?? assert.fail(`${name} is missing`), join(folder, name));
    }
    plain = { PATH: folder };
  });
  after(async () => {
    await machine.end();
    await fake.close();
    server.close();
  });

  it("[SB14] [SB17] [SB9] [GR3] [TA5] a host is refused by its name, asked for, and allowed for the conversation", async (t) => {
    if (shown.tier !== "bubblewrap") return t.skip("this machine has no bubblewrap");
    assert.deepEqual(shown.network, [host]);
    const { code, stderr } = await chat(request("example.org"));
    assert.equal(code, 0, stderr);
    assert.match(answer(), /^HTTP\/1\.1 403[\s\S]*does not let this command reach example\.org\./);
    assert.match(told(), /did not let the command reach example\.org; [^"]*`workspace\+net`/);
    assert.match(
      stderr,
      /laptop__Bash ok.*: the sandbox of this node did not let the command reach example\.org/,
      "the person sees it, too",
    );

    const question = await asked(request(host, withHosts(host)));
    assert.match(question.why, new RegExp(`on laptop in the sandbox, with hosts\\. It may reach ${host.replaceAll(".", "\\.")}\\.`));
    assert.match(question.text, /hosts/);
    assert.deepEqual(
      question.choices?.map(({ answer }) => answer),
      ["allow_session", "allow_1h", "allow_8h", "allow_30d"],
    );
    assert.match(answer(), /403/, "nothing was sent before the answer");
    await machine.ok("approval", "allow", question.code, "--for", "session");
    await ended();
    assert.match(answer(), /200 OK[\s\S]*from outside$/);

    // Without the hosts nothing is reached, with them no question is asked any more, though what was printed is now of others.
    await chat(request(host));
    assert.match(answer(), /403/);
    const again = await chat(request(host, withHosts(host)));
    assert.equal(again.code, 0, again.stderr);
    assert.match(answer(), /from outside$/);

    // The answer is about this host and this conversation, and nothing more is offered to what others may have written.
    const more = await asked(request("example.org", withHosts(host, "example.org")));
    assert.match(more.why, /It may reach 127\.0\.0\.2:\d+, example\.org\. Others may have written/);
    assert.deepEqual(more.choices ?? [], []);
    await deny(more);
    const elsewhere = await asked(request(host, withHosts(host)), OTHER);
    await deny(elsewhere, OTHER);
  });

  it("[AP17] [SB17] no one is asked about what the machine refuses: an address that its owner has not listed, and a file outside its folder", async (t) => {
    const outside = join(machine.folder, "outside.txt");
    assert.equal((await chat(`call laptop__Write ${JSON.stringify({ path: outside, content: "x" })}`, OTHER)).code, 0);
    assert.deepEqual(await waiting(), []);
    assert.match(
      told(),
      /Not run: the file is outside of .* limited to that folder\. [^"]*start the node there again with `--allow-outside`/,
    );
    assert.equal(existsSync(outside), false);
    if (shown.tier !== "bubblewrap") return t.skip("this machine has no bubblewrap");
    for (const name of ["127.0.0.3:80", "localhost:3000"]) {
      const { code, stderr } = await chat(request(name, withHosts("example.org", name)), OTHER);
      assert.equal(code, 0, stderr);
      assert.deepEqual(await waiting(), [], name);
      assert.ok(told().includes(`has not listed ${name}, `) && told().includes(`Listed are ${host}: `), told());
    }
  });

  it("[SB14] [SB9] with Landlock a command has no network, is told so, and asks to leave the sandbox", async (t) => {
    const run = await machine.gsv(["node", "sandbox", "--json", "--workspace", node.workspace], { env: plain });
    const found = JSON.parse(run.stdout) as Shown;
    if (found.tier !== "landlock") return t.skip("this machine has no Landlock");
    assert.equal(found.network, null, "no host is shown that no command can reach");
    const locked = await machine.node("locked", undefined, plain);
    const [, port] = host.split(":");
    const connect = (more: object): string => {
      const command = `bash -c 'exec 3<>/dev/tcp/127.0.0.2/${port} && printf reached >reached.txt'`;
      return `call locked__Bash ${JSON.stringify({ command, ...more })}`;
    };
    await chat(connect({}), OTHER);
    assert.equal(existsSync(locked.file("reached.txt")), false);
    assert.match(told(), /has no network, which may be why the command failed; [^"]*`sandbox` set to `off`; the user is asked first/);

    // [AP17] No one is asked about a call for hosts, and it says what can be asked for instead.
    assert.equal((await chat(connect(withHosts(host)), OTHER)).code, 0);
    assert.deepEqual(await waiting(), []);
    assert.match(told(), /lets no command ask for hosts[^"]*set `sandbox` to `off`/);
    assert.equal(existsSync(locked.file("reached.txt")), false);

    const leaves = await asked(connect({ sandbox: "off" }), OTHER);
    await machine.ok("approval", "allow", leaves.code);
    await ended(OTHER);
    assert.equal(readFileSync(locked.file("reached.txt"), "utf8"), "reached");
  });

  it("[SB12] a node that had bubblewrap does not start with Landlock before its owner accepts that, nor with a record that can't be read", async (t) => {
    if (shown.tier !== "bubblewrap") return t.skip("this machine has no bubblewrap");
    const run = await machine.gsv(["node", "sandbox", "--json", "--workspace", node.workspace], { env: plain });
    if ((JSON.parse(run.stdout) as Shown).tier !== "landlock") return t.skip("this machine has no Landlock");
    const config = join(machine.folder, "weaker config");
    mkdirSync(config, { mode: 0o700 });
    const home = { GSV_CONFIG_DIR: config, GSV_URL: machine.url, GSV_TOKEN: machine.token };
    const start = (env: Readonly<Record<string, string>>) => machine.node("weaker", undefined, { ...home, ...env });
    const refused = async (): Promise<string> => {
      const workspace = join(machine.folder, "weaker");
      const { code, stderr } = await machine.gsv(["node", "--id", "weaker", "--workspace", workspace], { env: { ...home, ...plain } });
      assert.equal(code, 2, stderr);
      return stderr;
    };
    await (await start({})).kill("SIGTERM");
    const weaker = await refused();
    assert.match(weaker, /the last start of this node had the tier bubblewrap, but this machine has only landlock now, which is weaker/);
    assert.match(weaker, /To accept landlock, write `tier = "landlock"` into node\.toml/);

    writeFileSync(join(config, "node.toml"), 'tier = "landlock"\n', { mode: 0o600 });
    const accepted = await start(plain);
    assert.match(accepted.output, /landlock/);
    await accepted.kill("SIGTERM");

    const record = join(machine.home, "node", "weaker", "sandbox.json");
    assert.equal((JSON.parse(readFileSync(record, "utf8")) as { tier: string }).tier, "landlock");
    writeFileSync(record, "{", { mode: 0o600 });
    assert.match(
      await refused(),
      /sandbox\.json, which says what the last start of this node had, can't be read: .*\. Remove it, to start/,
    );
    rmSync(record);
    await (await start(plain)).kill("SIGTERM");
  });

  it("[SB12] [SB14] a node does not start with workspace+net where no tier lets single hosts through", async () => {
    const config = join(machine.folder, "other config");
    mkdirSync(config, { mode: 0o700 });
    writeFileSync(join(config, "node.toml"), `sandbox = "workspace+net"\nnetwork = ["${host}"]\n`, { mode: 0o600 });
    const env = { ...plain, GSV_CONFIG_DIR: config, GSV_URL: machine.url, GSV_TOKEN: machine.token };
    const run = await machine.gsv(["node", "--id", "none", "--workspace", node.workspace], { env });
    assert.notEqual(run.code, 0);
    assert.match(run.stderr, /can't let commands reach single hosts/);
  });
});
