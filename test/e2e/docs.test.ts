/** The commands of the guides, as they are printed there, with the built program and a real gateway. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { Deployer } from "./deploy-support.ts";
import { withServices } from "./services.ts";
import { ERRORS } from "../../protocol/gen/errors.ts";
import { startFakeModel } from "../fakes/fake-model.ts";
import { FakePlatform } from "./fake-platform.ts";
import { BIN, freePort, type Json, Machine, ROOT } from "./support.ts";
import { until } from "./waiting.ts";

/** Commands that read an answer, with what is typed. */
const TYPED: Readonly<Record<string, string>> = {
  "packs.secrets.": "a-token-of-a-test\n",
  "--secret -": "whsec_of_an_account_of_a_test\n",
};

/** Each line of each `sh` block, without its comment. */
const commandsOf = (guide: string): readonly string[] =>
  [...readFileSync(join(ROOT, "docs", guide), "utf8").matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block = ""]) =>
    block
      .replaceAll(/\\\n\s*/g, "")
      .split("\n")
      .map((line) => line.replace(/\s+#\s.*$/, "").trim())
      .filter((line) => line !== ""),
  );

/** Each `bash` block as a whole: its lines use what the lines before have set. */
const scriptsOf = (guide: string): readonly string[] =>
  [...readFileSync(join(ROOT, "docs", guide), "utf8").matchAll(/^ *```bash\n([\s\S]*?)^ *```/gm)].map(([, block = ""]) => block);

/** Runs a line of a guide as a person would, in the machine's folder. */
async function run(machine: Machine, command: string, env: Readonly<Record<string, string>> = {}): Promise<void> {
  const child = spawn("/bin/sh", ["-c", command], {
    cwd: machine.folder,
    env: machine.env({ PATH: `${dirname(BIN)}${delimiter}${process.env["PATH"] ?? ""}`, EDITOR: "true", VISUAL: "true", ...env }),
    stdio: ["pipe", "pipe", "pipe"],
    timeout: 60_000,
  });
  child.stdin.on("error", () => undefined);
  child.stdin.end(Object.entries(TYPED).find(([name]) => command.includes(name))?.[1] ?? "");
  const [[status], stdout, stderr] = await Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]);
  assert.equal(status, 0, `${command}\n${stdout}\n${stderr}`);
}

describe("docs/getting-started.md", () => {
  const machine = new Machine();
  const model = startFakeModel();
  before(() => machine.up());
  after(async () => {
    await machine.end();
    await (await model).close();
  });

  it("[SU1] [SU3] each of its commands does what the guide says, in the order of the guide", async () => {
    const { url } = await model;
    await machine.ok("config", "set", "providers.lab", JSON.stringify({ baseUrl: `${url}/v1`, wire: "openai-completions" }));
    writeFileSync(join(machine.folder, "key"), "sk-a-key-of-a-test\n");
    await machine.node("laptop");
    await machine.ok("local-config", "set", "node.workspace", join(machine.folder, "laptop"));
    const commands = commandsOf("getting-started.md");
    assert.ok(commands.length >= 15, commands.join("\n"));
    for (const command of commands)
      await run(machine, command.replace("--provider anthropic --model claude-sonnet-4-5", "--provider lab --model fake-1"));
    assert.match(await machine.ok("workspace", "cat", "USER.md"), /^- Name: Sam$/m);
  });
});

describe("docs/troubleshooting.md", () => {
  const machine = new Machine();
  const env = withServices(machine);
  before(async () => {
    await machine.up();
    await machine.node("laptop");
    await machine.ok("chat", "say hello");
  });
  after(() => machine.end());

  it("each of its commands does what the guide says", async () => {
    const commands = commandsOf("troubleshooting.md");
    assert.ok(commands.length >= 7, commands.join("\n"));
    for (const command of commands) await run(machine, command, { ...env, PATH: `${dirname(BIN)}${delimiter}${env.PATH}` });
  });

  it("names only commands and reasons of errors that exist", async () => {
    const guide = readFileSync(join(ROOT, "docs", "troubleshooting.md"), "utf8");
    const help = await machine.ok("--help");
    const named = [...guide.matchAll(/`gsv ([a-z-]+)/g)].map(([, name = ""]) => name);
    assert.ok(named.length > 15, named.join(" "));
    for (const name of named) assert.match(help, new RegExp(`^  ${name} `, "m"), name);
    const reasons = [...guide.matchAll(/`((?:model|budget|auth|link)\.[a-z_]*)`/g)].map(([, reason = ""]) => reason);
    assert.ok(reasons.length > 1, reasons.join(" "));
    for (const reason of reasons)
      assert.ok(
        Object.keys(ERRORS).some((known) => known.startsWith(reason)),
        reason,
      );
  });
});

describe("docs/channels.md", () => {
  const machine = new Machine();
  const platforms = { whatsapp: new FakePlatform("whatsapp/main.ts", "--port", "0"), discord: new FakePlatform("discord/main.ts", "0") };
  after(async () => {
    await machine.end();
    for (const platform of Object.values(platforms)) await platform.end();
  });

  it("[P7] each of its commands does what the guide says, in the order of the guide", async () => {
    const whatsapp = await platforms.whatsapp.told();
    const discord = await platforms.discord.told();
    const { WHATSAPP_URL = "", WHATSAPP_NOISE_ROOT = "" } = whatsapp;
    mkdirSync(join(machine.home, "gateway"), { recursive: true, mode: 0o700 });
    const channels = { whatsapp: { enabled: true, vars: { WHATSAPP_URL, WHATSAPP_NOISE_ROOT } } };
    writeFileSync(join(machine.home, "gateway", "channels.json"), JSON.stringify({ version: 1, channels }), { mode: 0o600 });
    await machine.up();
    const play = async (what: string, wanted: object): Promise<void> => {
      const response = await fetch(`${whatsapp["http"] ?? ""}/${what}`, { method: "POST", body: JSON.stringify(wanted) });
      assert.equal(response.status, 200, await response.text());
    };
    // Enabling a channel restarts the gateway, so each question has a connection of its own.
    const ask = async (method: string, params: Json = {}): Promise<Json> => {
      const client = await machine.client();
      try {
        return await client.call(method, params);
      } finally {
        client.close();
      }
    };
    const codes = async (): Promise<readonly string[]> =>
      Object.values(((await ask("pair.list"))["pairs"] ?? {}) as Record<string, { code: string }>).map(({ code }) => code);
    const commands = commandsOf("channels.md");
    assert.ok(commands.length >= 15, commands.join("\n"));
    for (const command of commands) {
      if (command === "gsv channel whatsapp login") {
        const login = machine.ok("channel", "whatsapp", "login", "--json");
        const { login: shown } = await ask("channel.login", { channel: "whatsapp" });
        await play("scan", { qr: (shown as { qr: string }).qr });
        await login;
        for (const pn of ["15550004441", "15550004442", "15550004443"]) {
          await play("people", { pn });
          await play("say", { from: pn, text: "hello" });
        }
        await until("three strangers wait", async () => (await codes()).length === 3, undefined, 50);
      } else if (command === "gsv channel discord start") {
        const token = join(machine.folder, "token.txt");
        writeFileSync(token, discord["token"] ?? "", { mode: 0o600 });
        await run(machine, `${command} --config apiBase=${discord["apiBase"] ?? ""} --token-file '${token}'`);
      } else if (command.includes("K7Q2AB")) {
        const [code = ""] = await codes();
        await run(
          machine,
          `${command.replace(/(whatsapp|discord) K7Q2AB/, `whatsapp ${code}`)}${command.includes("--owner") ? " --yes" : ""}`,
        );
      } else await run(machine, command);
    }
    assert.deepEqual(JSON.parse(await machine.ok("config", "get", "channels.whatsapp.owners", "--json")), ["+31687654321"]);
    assert.match(await machine.ok("channel", "status", "discord"), /logged in +no/);
  });
});

describe("docs/agents.md", () => {
  const machine = new Machine();
  before(() => machine.up());
  after(() => machine.end());

  it("[AD1] its definition and each of its commands do what the guide says, in the order of the guide", async () => {
    const guide = readFileSync(join(ROOT, "docs", "agents.md"), "utf8");
    const definition = /```yaml\n([\s\S]*?)```/.exec(guide)?.[1] ?? assert.fail("no definition");
    mkdirSync(join(machine.folder, "sorter"));
    writeFileSync(join(machine.folder, "sorter", "agent.yaml"), definition);
    writeFileSync(join(machine.folder, "order.json"), "{}");
    const { token } = JSON.parse(await machine.ok("token", "create", "--scope", "client", "--json")) as { token: string };
    const commands = commandsOf("agents.md");
    assert.ok(commands.length >= 9, commands.join("\n"));
    for (const command of commands) {
      // What a person reads in the list, and types at the question.
      const kept = command.includes(" MEMORY ") ? await machine.ok("memory", "list", "--agent", "sorter", "--json") : "{}";
      const { memories = [] } = JSON.parse(kept) as { memories?: readonly { id: string }[] };
      const { jobs = [] } = command.includes("ID")
        ? (JSON.parse(await machine.ok("job", "list", "--json")) as { jobs?: readonly { job_id: string }[] })
        : {};
      await run(
        machine,
        command
          .replace(" MEMORY ", ` ${memories[0]?.id ?? ""} --yes `)
          .replaceAll("127.0.0.1:8787", `127.0.0.1:${machine.port}`)
          .replaceAll("$GSV_TOKEN", token)
          .replaceAll(/\bID\b/g, jobs[0]?.job_id ?? ""),
      );
      if (command.includes("sed ")) assert.match(await machine.ok("agent", "show", "sorter"), /limits +20 model calls/);
      if (command.includes("--version 1")) assert.equal(await machine.ok("agent", "show", "sorter", "--yaml"), definition);
    }
    assert.match(await machine.ok("agent", "show", "sorter"), /No definition/);
  });
});

describe("docs/automation.md", () => {
  const machine = new Machine();
  before(async () => {
    await machine.up();
    await machine.ok("chat", "hello");
  });
  after(() => machine.end());

  it("each of its commands does what the guide says, in the order of the guide", async () => {
    const commands = commandsOf("automation.md");
    assert.ok(commands.length > 10, commands.join("\n"));
    for (const command of commands) {
      const { jobs } = JSON.parse(await machine.ok("cron", "list", "--json")) as { jobs: readonly { id: string }[] };
      await run(machine, command.replace("JOB", jobs[0]?.id ?? ""));
    }
    const hooks = await machine.ok("hook", "list");
    for (const name of ["issues", "payments", "backup"]) assert.match(hooks, new RegExp(`^${name}\\b`, "m"));
    assert.match(await machine.ok("heartbeat", "status"), /every 30 min, 08:00 to 22:00/);
    assert.match(await machine.ok("cron", "list"), /Call the dentist/);
  });

  it("[HK2] [HK4] its lines for openssl and curl sign a delivery, which is accepted once", async () => {
    const scripts = scriptsOf("automation.md");
    assert.equal(scripts.length, 2);
    for (const [form, script] of [
      ["standard", scripts[0] ?? ""],
      ["github", scripts[1] ?? ""],
    ] as const) {
      const added = JSON.parse(await machine.ok("hook", "add", `by-hand-${form}`, "It says: {{body}}", "--form", form, "--json")) as {
        hook: { path: string };
        secret: string;
      };
      const env = machine.env({
        PATH: process.env["PATH"] ?? "",
        SECRET: added.secret,
        ADDRESS: `http://127.0.0.1:${machine.port}${added.hook.path}`,
      });
      const deliver = (script: string) => spawnSync("/bin/sh", ["-c", script], { env, encoding: "utf8", timeout: 60_000 });
      const first = deliver(script);
      assert.equal(first.status, 0, first.stderr);
      assert.equal(first.stdout, '{"status":"accepted"}');
      assert.doesNotMatch(deliver(script).stdout, /accepted/);
      assert.match(deliver(script.replace('$BODY" |', '$BODY." |')).stderr, /401/);
    }
  });
});

describe("docs/deploy.md", () => {
  let deployer: Deployer;
  before(async () => {
    deployer = await Deployer.start();
  });
  after(() => deployer.end());

  it("[DE3] each of its commands does what the guide says, in the order of the guide, on a fake account", async () => {
    const commands = commandsOf("deploy.md");
    assert.ok(commands.length >= 7, commands.join("\n"));
    for (const command of commands) {
      const [, , ...args] = command.split(" ");
      // What a person types at the question, and the fake's address in place of that at workers.dev.
      if (["up", "down", "rollback"].includes(args[0] ?? "")) args.push("--yes");
      if (args[0] === "up") args.push("--address", deployer.fake.gatewayUrl);
      await deployer.ok(deployer.run(args));
    }
    assert.equal(deployer.fake.scripts.size, 0);
  });
});

describe("docs/everyday.md", () => {
  const machine = new Machine();
  const env = withServices(machine);
  after(async () => {
    await machine.gsv(["service", "uninstall"], { env });
    await machine.end();
  });

  it("[SV1] each of its commands does what the guide says, in the order of the guide", async () => {
    await machine.usePort();
    const commands = commandsOf("everyday.md");
    assert.ok(commands.length >= 10, commands.join("\n"));
    for (const command of commands) await run(machine, command, { ...env, PATH: `${dirname(BIN)}${delimiter}${env.PATH}` });
    assert.equal((await machine.gsv(["service", "status"], { env })).code, 1);
    assert.deepEqual(readdirSync(join(machine.folder, ".config", "systemd", "user")), []);
  });
});

describe("docs/packs.md", () => {
  const machine = new Machine();
  before(() => machine.up());
  after(() => machine.end());

  it("[PK2] each of its commands does what the guide says, in the order of the guide", async () => {
    const commands = commandsOf("packs.md");
    assert.ok(commands.length >= 10, commands.join("\n"));
    for (const command of commands) {
      await run(machine, command);
      if (command === "gsv agent list") assert.match(await machine.ok("agent", "list"), /agent-triage/);
      if (command.includes('"success"')) assert.match(await machine.ok("tools", "list"), /success_usage/);
    }
    assert.match(await machine.ok("cron", "list"), /0 6 \* \* MON/);
    assert.doesNotMatch(await machine.ok("tools", "list"), /shopify|success_/);
  });
});

describe("docs/backup.md", () => {
  const machine = new Machine();
  const PASSPHRASE = "GSV_BACKUP_PASSPHRASE";
  before(async () => {
    await machine.up();
    await machine.ok("chat", "say it is kept");
    process.env[PASSPHRASE] = "five words for a backup";
  });
  after(async () => {
    delete process.env[PASSPHRASE];
    await machine.end();
  });

  it("[BK1] [BK10] each of its commands does what the guide says, in the order of the guide", async () => {
    const commands = commandsOf("backup.md");
    assert.ok(commands.length >= 9, commands.join("\n"));
    const port = String(await freePort());
    for (const command of commands) await run(machine, command.replaceAll("~/", `'${machine.folder}'/`).replace("8799", port));
    assert.match(await machine.ok("session", "preview"), /it is kept/);
    assert.ok(readdirSync(machine.folder).some((name) => name.startsWith("home.before-")));
  });
});
