/** The commands of the guides, as they are printed there, with the built program and a real gateway. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, lstatSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { Deployer } from "./deploy-support.ts";
import { withServices } from "./services.ts";
import { ERRORS } from "../../protocol/gen/errors.ts";
import { startFakeModel } from "../fakes/fake-model.ts";
import { FakePlatform } from "./fake-platform.ts";
import { isSigned } from "../../scripts/lib/release/minisign.ts";
import { Releases } from "./releases.ts";
import { runtimeVariant } from "./runtime-variant.ts";
import { BIN, freePort, type Json, Machine, ROOT, RUNTIME } from "./support.ts";
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
async function run(
  machine: Machine,
  command: string,
  env: Readonly<Record<string, string>> = {},
  typed = Object.entries(TYPED).find(([name]) => command.includes(name))?.[1] ?? "",
): Promise<void> {
  const child = spawn("/bin/sh", ["-c", command], {
    cwd: machine.folder,
    env: machine.env({ PATH: `${dirname(BIN)}${delimiter}${process.env["PATH"] ?? ""}`, EDITOR: "true", VISUAL: "true", ...env }),
    stdio: ["pipe", "pipe", "pipe"],
    timeout: 60_000,
  });
  child.stdin.on("error", () => undefined);
  child.stdin.end(typed);
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
      await run(machine, command.replace("--provider anthropic --model claude-sonnet-5", "--provider lab --model fake-1"));
    assert.match(await machine.ok("workspace", "cat", "USER.md"), /^- Name: Sam$/m);
  });

  it("[TA2] its first chat names the agent before it reads the web, which would make four questions of the name", () => {
    const guide = readFileSync(join(ROOT, "docs", "getting-started.md"), "utf8");
    const lines = [...guide.matchAll(/^> (.+)$/gm)].map(([, line = ""]) => line);
    assert.ok(lines.indexOf("your name is Ada and I am Sam") >= 0, lines.join("\n"));
    assert.match(lines.at(-1) ?? "", /^run with /);
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
    const codes = async (channel: string): Promise<readonly string[]> =>
      Object.values(((await ask("pair.list"))["pairs"] ?? {}) as Record<string, { channel: string; code: string }>)
        .filter((pair) => pair.channel === channel)
        .map(({ code }) => code);
    const { control = "" } = discord;
    const onDiscord = async (method: string, ...args: readonly Json[]): Promise<unknown> =>
      (await fetch(`${control}${method}`, method === "log" ? {} : { method: "POST", body: JSON.stringify(args) })).json();
    const commands = commandsOf("channels.md");
    assert.ok(commands.length >= 15, commands.join("\n"));
    let hasStarted = false;
    for (const command of commands) {
      if (command === "gsv channel whatsapp login") {
        const login = machine.ok("channel", "whatsapp", "login", "--json");
        const { login: shown } = await ask("channel.login", { channel: "whatsapp" });
        await play("scan", { qr: (shown as { qr: string }).qr });
        await login;
        await play("people", { pn: "15550004441" });
        await play("say", { from: "15550004441", text: "hello" });
        await until("a stranger waits", async () => (await codes("whatsapp")).length === 1, undefined, 50);
      } else if (command === "gsv channel discord start") {
        const token = join(machine.folder, "token.txt");
        writeFileSync(token, discord["token"] ?? "", { mode: 0o600 });
        await run(machine, `${command} --config apiBase=${discord["apiBase"] ?? ""} --token-file '${token}'`);
        if (hasStarted) continue;
        hasStarted = true;
        const isConnected = async () => ((await onDiscord("log")) as readonly Json[]).some(({ kind }) => kind === "gateway.ready");
        await until("the bot is connected", isConnected, undefined, 50);
        for (const id of ["1", "2"]) {
          const user = { id: `40000000000000010${id}`, username: `stranger${id}`, discriminator: "0", global_name: null, avatar: null };
          await onDiscord("say", { content: "hello", user, channel: `50000000000000010${id}` });
        }
        await until("two strangers wait", async () => (await codes("discord")).length === 2, undefined, 50);
      } else if (command.includes("K7Q2AB")) {
        const [code = ""] = await codes(/(whatsapp|discord) K7Q2AB/.exec(command)?.[1] ?? "");
        await run(machine, `${command.replace("K7Q2AB", code)}${command.includes("--owner") ? " --yes" : ""}`);
      } else await run(machine, command);
    }
    assert.deepEqual(JSON.parse(await machine.ok("config", "get", "channels.whatsapp.owners", "--json")), ["+31687654321"]);
    assert.match(await machine.ok("channel", "status", "discord"), /logged in +no/);
    const approved = ((await ask("pair.list"))["approved"] ?? []) as readonly { readonly channel: string }[];
    assert.deepEqual(approved.map(({ channel }) => channel).sort(), ["discord", "whatsapp"]);
    assert.deepEqual([await codes("whatsapp"), await codes("discord")], [[], []]);
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
    // The first scheduled backup begins at once, and a second one at the same time is refused: a person would run the command again.
    const isDone = async (command: string): Promise<boolean> =>
      run(machine, command).then(
        () => true,
        (error: unknown) => {
          if (/Another backup of this gateway is being made/.test(String(error))) return false;
          throw error;
        },
      );
    for (const command of commands) {
      const line = command.replaceAll("~/", `'${machine.folder}'/`).replace("8799", port);
      await until(`${line} was done`, () => isDone(line));
    }
    assert.match(await machine.ok("session", "preview"), /it is kept/);
    assert.ok(readdirSync(machine.folder).some((name) => name.startsWith("home.before-")));
  });
});

describe("docs/move.md", () => {
  const [source, target] = [new Machine(), new Machine()];
  before(async () => {
    await source.up();
    await source.ok("chat", "say it has moved");
    await target.up();
  });
  after(async () => {
    await source.end();
    await target.end();
  });

  it("[MV4] [MV5] each of its commands does what the guide says, in the order of the guide", async () => {
    const commands = commandsOf("move.md");
    assert.ok(commands.length >= 6, commands.join("\n"));
    for (const command of commands)
      await run(
        source,
        command.replaceAll("~/", `'${source.folder}'/`).replace("https://gsv.example.workers.dev", `ws://127.0.0.1:${target.port}/ws`),
        { GSV_BACKUP_PASSPHRASE: "five words for a move" },
        command.endsWith("token -") ? `${target.token}\n` : "",
      );
    assert.match(await target.ok("session", "preview"), /it has moved/);
    assert.match(await source.ok("session", "preview"), /it has moved/, "every command goes to the new gateway");
  });
});

describe("docs/upgrade.md", () => {
  const machine = new Machine();
  const releases = new Releases(join(machine.folder, "made", "releases"));
  const installed = join(machine.folder, ".local", "opt", "gsv");
  const env = { HOME: machine.folder, PATH: `${join(machine.folder, ".local", "bin")}${delimiter}${process.env["PATH"] ?? ""}` };
  /** With the runtime of the installed program. */
  const does = (command: string): Promise<void> => run(machine, `unset GSV_RUNTIME_DIR; ${command}`, env);
  const version = (): unknown => (JSON.parse(readFileSync(join(installed, "release.json"), "utf8")) as Json)["version"];
  after(() => machine.end());

  it("[UP8] [UP11] [UP14] each of its commands does what the guide says, from the installation on", async () => {
    releases.make({ at: 1000 });
    copyFileSync(releases.archive(), join(machine.folder, basename(releases.archive())));
    const commands = commandsOf("upgrade.md").map((command) =>
      command
        .replaceAll("-linux-x64", `-${process.platform}-${process.arch}`)
        .replace("https://releases.example.org/gsv", `'${releases.folder}'`)
        .replace("RWQ...", releases.publicKey),
    );
    const [updates, settings, installation] = [commands.slice(0, 4), commands.slice(4, 7), commands.slice(7)];
    assert.deepEqual(
      [updates.length, settings.length, installation.length, updates[1], settings[2], installation.at(-1)],
      [4, 3, 3, "gsv update", "gsv local-config set update.channel beta", "ln -s ~/.local/opt/gsv/bin/gsv ~/.local/bin/gsv"],
    );
    for (const command of installation) await does(command);
    await machine.usePort();
    await does("gsv up");
    await does("gsv chat 'say before the update'");
    for (const command of settings) await does(command);
    const runtime = runtimeVariant(join(machine.folder, "runtime-0.2.0"), { version: "0.2.0+test" });
    releases.make({ version: "0.2.0", runtime, channel: "beta", at: 2000 });
    const versions: unknown[] = [];
    for (const command of updates) {
      // The last line is another way back from the same update.
      if (command.includes("--with-state")) await does("gsv update");
      await does(command);
      versions.push(version());
    }
    assert.deepEqual(versions, ["0.1.0", "0.2.0", "0.1.0", "0.1.0"]);
    assert.match(await machine.ok("session", "preview"), /before the update/);
  });
});

describe("docs/release.md", () => {
  const machine = new Machine();
  const env = { HOME: machine.folder, PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}` };
  after(() => machine.end());

  it("[RE1] its commands make a key and a signed release, and put the runtime where the program looks", async () => {
    const commands = commandsOf("release.md");
    const [key = "", release = "", cargo = "", copy = ""] = commands;
    assert.deepEqual([commands.length, cargo], [4, "cargo install --locked --path cli && npm ci && npm run build"]);
    await run(machine, key.replace("./scripts/release", `'${join(ROOT, "scripts", "release")}'`), env);
    const file = join(machine.folder, "gsv-release.key");
    assert.equal(statSync(file).mode & 0o777, 0o600);
    // With the program and the runtime that are built already.
    const script = `'${process.execPath}' '${join(ROOT, "scripts", "release.ts")}'`;
    await run(machine, `cd '${ROOT}' && ${release.replace("./scripts/release", script)} --out "$HOME/release"`, {
      ...env,
      GSV_RELEASE_BINARY: BIN,
      GSV_RELEASE_FAST: "1",
      // The list of what is in it is cargo's, whose folders are below the person's home.
      CARGO_HOME: process.env["CARGO_HOME"] ?? join(homedir(), ".cargo"),
      RUSTUP_HOME: process.env["RUSTUP_HOME"] ?? join(homedir(), ".rustup"),
    });
    const out = join(machine.folder, "release");
    const publicKey = readFileSync(`${file}.pub`, "utf8").split("\n")[1] ?? "";
    for (const name of ["SHA256SUMS", "stable.json"])
      assert.ok(isSigned(publicKey, readFileSync(join(out, name)), readFileSync(join(out, `${name}.minisig`), "utf8")), name);
    await run(machine, copy.replace("dist/runtime", `'${RUNTIME}'`), env);
    assert.ok(lstatSync(join(machine.folder, ".gsv", "runtime", "workerd")).isFile());
  });
});
