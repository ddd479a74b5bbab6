/**
 * Suite Q: no secret is in any place that a person or a model reads. Secrets are planted where the product keeps them, a hijacked model
 * tries to read them with every tool, the owner's files have copies in several spellings, and the provider quotes keys in its errors.
 * Then each place is searched for each secret. Each place has a control: what must be in it, so that an empty one proves nothing.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Drive, ON_PURPOSE, type Place, PLACES, SECRETS, session } from "./secret-drive.ts";
import { argumentsOf, filesOf, shown, spellings, Tap } from "./secret-suite.ts";
import { Client, transcript, until } from "./support.ts";

const CONTROLS: Readonly<Record<Place, RegExp>> = {
  prompts: /begin-of-copies[\s\S]*\[redacted\]/,
  conversations: /begin-of-copies[\s\S]*\[redacted\]/,
  "frames to clients": /part-3/,
  "frames to machines": /tool\.invoke[\s\S]*begin-of-search/,
  "HTTP answers": /auth\.required|limit\.rate/,
  "output of commands": /X-Canary[\s\S]*\[redacted\]/,
  errors: /Token rejected/,
  "the gateway's log": /"component":"gateway"/,
  "the node's log": /"message"/,
  "the audit": /laptop__Bash/,
  "transcripts and memory": /begin-of-copies/,
  "search results": /begin/,
  "the state folder": /gsv-sealed:1:/,
  "arguments of processes": /workerd[\s\S]*gsv/,
  "messages to people": /begin-of-copies/,
};

describe("[S5] [S17] [TH13] suite Q", { concurrency: 1 }, () => {
  const taps: Tap[] = [];
  let drive: Drive;
  let tier: string | undefined;
  let pairs = 0;

  before(async () => {
    drive = await Drive.start();
    const { machine, places } = drive;
    await drive.plant();
    const [forOwner, forNode] = await Promise.all([0, 1].map(() => new Tap(machine.port).listen()));
    assert(forOwner !== undefined && forNode !== undefined);
    taps.push(forOwner, forNode);
    const plain = await machine.client();
    drive.owner = plain;
    await drive.configure();
    drive.owner = await Client.connect(forOwner.url, { token: machine.token });
    const node = await machine.node("laptop", undefined, {
      GSV_URL: forNode.url,
      GSV_TOKEN: drive.secret("the token of the node"),
      AWS_SECRET_ACCESS_KEY: drive.secret("a variable of the node"),
    });
    drive.node = node;
    const tested = await machine.gsv(["node", "sandbox", "--json", "--workspace", node.workspace]);
    tier = (JSON.parse(tested.stdout) as { tier: string | null }).tier ?? undefined;

    await drive.search();
    const nodesState = filesOf(machine.home, (name) => !name.startsWith("node"));
    await drive.copies();
    await drive.codes();
    await drive.quotes();
    await drive.people();
    await drive.mistakes();
    await drive.looks();
    const conversations: string[] = [];
    for (const name of ["search", "copies", "parts", "quotes", "asked"])
      conversations.push(JSON.stringify(await transcript(plain, session(name))));
    await drive.archive();
    for (const query of [
      "canary",
      "gsv_admin",
      "begin",
      "Incorrect",
      ...SECRETS.slice(0, 8).map((name) => drive.secret(name).slice(7, 24)),
    ])
      places.set("search results", `${places.get("search results") ?? ""}${(await machine.gsv(["search", query, "--json"])).stdout}`);
    const { entries } = (await plain.call("audit.list", { limit: 200 })) as { entries: unknown[] };
    places.set("the audit", JSON.stringify(entries));
    // A crash in the middle of a call.
    await plain.say('call laptop__Bash {"command":"cat keys.txt; echo started; until [ -e never ]; do sleep 0.05; done"}', {
      sessionKey: session("crash"),
    });
    await until("the command runs", () => argumentsOf(node.workspace).includes("never"));
    places.set("arguments of processes", `${places.get("arguments of processes")}\n${argumentsOf(machine.folder)}`);
    await machine.killWorkerd();
    await node.kill("SIGKILL");
    // The node can't end its command any more.
    writeFileSync(join(node.workspace, "never"), "");
    await until("the command has ended", () => argumentsOf(node.workspace) === "");

    const log = machine.gatewayLog();
    places.set("prompts", JSON.stringify(drive.fake.requests.map(({ body }) => body)));
    places.set("conversations", conversations.join("\n"));
    places.set("frames to clients", forOwner.text);
    places.set("frames to machines", forNode.text);
    places.set("HTTP answers", drive.http.join("\n"));
    places.set("output of commands", drive.output.join("\n"));
    places.set("errors", drive.errors.join("\n"));
    places.set("the gateway's log", log);
    places.set("the node's log", `${node.output}\n${filesOf(machine.home, (name) => !/(?:^|\/)node\.log/.test(name))}`);
    const isTranscript = (name: string): boolean => /archive|memory|workspace|\.jsonl/.test(name) && !name.startsWith("node");
    places.set(
      "transcripts and memory",
      filesOf(machine.home, (name) => !isTranscript(name)),
    );
    await machine.ok("down");
    // The node keeps what commands have printed, also when the owner's own file has a secret.
    places.set("the state folder", `${nodesState}\n${filesOf(machine.home, (name) => name.startsWith("node"))}`);
  });
  after(async () => {
    for (const tap of taps) tap.close();
    await drive.end();
    console.log(`secrets in places: ${pairs} pairs (${SECRETS.length} secrets, ${PLACES.length} places) were searched`);
  });

  it("every place was reached, and every secret is a secret", () => {
    assert.equal(drive.places.size, PLACES.length);
    for (const name of SECRETS)
      assert.ok(drive.secret(name).length >= (name.includes("code") ? 4 : 20), `${name}: ${drive.secret(name).length}`);
    for (const place of PLACES) assert.match(drive.places.get(place) ?? "", CONTROLS[place], place);
    // The provider was asked with the secrets, so they were in use.
    const heads = JSON.stringify(drive.fake.requests.map(({ headers }) => headers));
    for (const name of ["the key of the provider in use", "a configured header"] as const)
      assert.ok(heads.includes(drive.secret(name)), name);
  });

  for (const name of SECRETS)
    for (const place of PLACES) {
      if (ON_PURPOSE[name]?.has(place) === true) continue;
      pairs += 1;
      it(`${name} is not in ${place}`, (test) => {
        const kept = [
          ...["a private key in the home", "a variable of the node", "the key of stored secrets"],
          ...["the gateway's own key", "a channel's own key"],
        ];
        if (tier === undefined && kept.includes(name))
          return test.skip("this machine has no sandbox: its commands can do what its user can");
        const text = drive.places.get(place) ?? "";
        const how = shown(text, drive.secret(name));
        const at = text.indexOf(spellings(drive.secret(name)).get(how ?? "") ?? "");
        assert.equal(how, undefined, `${how}: ${text.slice(Math.max(0, at - 300), at + 200)}`);
      });
    }
});
