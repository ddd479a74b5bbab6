/** Hosts for commands in the sandbox, with the built program, a real gateway and a real node: refused by name, asked for, allowed. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type FakeModel, Machine, type NodeProcess, startFakeModel, until } from "./support.ts";

interface Waiting {
  readonly code: string;
  readonly text: string;
  readonly why: string;
  readonly choices?: readonly { readonly answer: string; readonly text: string }[];
}

describe("hosts for commands in the sandbox", () => {
  const machine = new Machine();
  let fake: FakeModel;
  let node: NodeProcess;
  let server: Server;
  /** Of the server. An address of this machine is reached only because `network` in node.toml lists it. */
  let host: string;
  let tier: string | null;
  const SESSION = "agent:main:cli:dm:hosts";
  /** Sends a request to the proxy, as programs do that know `HTTP_PROXY`, and keeps the answer in a file. */
  const request = (name: string, more: object = {}): string => {
    const text = `GET http://${name}/ HTTP/1.1\\r\\nHost: ${name}\\r\\n\\r\\n`;
    const command = `bash -c 'exec 3<>/dev/tcp/127.0.0.1/\${HTTP_PROXY##*:}; printf "${text}" >&3; cat <&3 >answer.txt'`;
    return `call laptop__Bash ${JSON.stringify({ command, ...more })}`;
  };
  const chat = (message: string) => machine.gsv(["chat", "--session", SESSION, message]);
  const answer = (): string => readFileSync(node.file("answer.txt"), "utf8");
  const waiting = async (): Promise<readonly Waiting[]> =>
    (JSON.parse(await machine.ok("approval", "list", "--json")) as { approvals: readonly Waiting[] }).approvals;
  async function asked(message: string): Promise<Waiting> {
    const { code, stdout, stderr } = await chat(message);
    assert.equal(code, 5, `${stdout}\n${stderr}`);
    const [open, ...more] = await waiting();
    assert.equal(more.length, 0);
    return open ?? assert.fail();
  }
  const ended = async (): Promise<void> => {
    await until("the run ends", async () => {
      const stats = JSON.parse(await machine.ok("session", "stats", SESSION, "--json")) as { isProcessing: boolean };
      return !stats.isProcessing;
    });
  };

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
    const shown = await machine.gsv(["node", "sandbox", "--json", "--workspace", node.workspace]);
    const found = JSON.parse(shown.stdout) as { tier: string | null; network: readonly string[] };
    tier = found.tier;
    assert.deepEqual(found.network, [host]);
  });
  after(async () => {
    await machine.end();
    await fake.close();
    server.close();
  });

  it("[SB14] [SB17] [SB9] [GR3] a host is refused by its name, asked for, and allowed for the conversation", async (t) => {
    if (tier !== "bubblewrap") return t.skip("this machine has no bubblewrap");
    const { code, stderr } = await chat(request("example.org"));
    assert.equal(code, 0, stderr);
    assert.match(answer(), /^HTTP\/1\.1 403[\s\S]*does not let this command reach example\.org\./);
    const told = JSON.stringify(fake.requests.at(-1));
    assert.match(told, /did not let the command reach example\.org; [^"]*`workspace\+net`/);

    const question = await asked(request(host, { sandbox: "workspace+net", hosts: [host] }));
    assert.match(question.why, new RegExp(`on laptop in the sandbox, with access to ${host.replaceAll(".", "\\.")}\\.`));
    assert.match(question.text, /hosts/);
    assert.deepEqual(
      question.choices?.map(({ answer }) => answer),
      ["allow_session", "allow_1h", "allow_8h", "allow_30d"],
    );
    assert.match(answer(), /403/, "nothing was sent before the answer");
    await machine.ok("approval", "allow", question.code, "--for", "session");
    await ended();
    assert.match(answer(), /200 OK[\s\S]*from outside$/);

    // Without the hosts nothing is reached, with them no question is asked any more.
    await chat(request(host));
    assert.match(answer(), /403/);
    const again = await chat(request(host, { sandbox: "workspace+net", hosts: [host] }));
    assert.equal(again.code, 0, again.stderr);
    assert.match(answer(), /from outside$/);
  });
});
