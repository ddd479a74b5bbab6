import assert from "node:assert/strict";
import { test } from "node:test";
import { botOfToken, isGatewayAddress, readSettings } from "./settings.ts";

const TOKEN = "MTAw.Fake-1.fake-token-of-a-bot";
const rows: readonly (readonly [what: string, config: Record<string, unknown>, why: RegExp | undefined])[] = [
  ["a token", { token: TOKEN }, undefined],
  ["a token as it is copied", { token: ` Bot ${TOKEN}\n` }, undefined],
  ["no token", {}, /There is no bot token/],
  ["something else", { token: "hunter2" }, /three parts/],
  ["a number", { token: 5 }, /three parts/],
  ["a token with a line end inside", { token: "MTAw.Fake-1\r\n.fake-token" }, /three parts/],
  ["another address", { token: TOKEN, apiBase: "https://proxy.example/api" }, undefined],
  ["an address on this machine", { token: TOKEN, apiBase: "http://127.0.0.1:9/api" }, undefined],
  ["an address that anybody can read along", { token: TOKEN, apiBase: "http://proxy.example/api" }, /https/],
  ["an address that is not a URL", { token: TOKEN, apiBase: "discord" }, /not a URL/],
];
for (const [what, config, why] of rows) {
  test(`[S5] settings: ${what}`, () => {
    const read = readSettings(config, {});
    if (why === undefined) assert.ok(read.ok);
    else {
      assert.ok(!read.ok);
      assert.match(read.why, why);
      assert.ok(!read.why.includes(String(config["token"] ?? "\u0000")));
    }
  });
}
test("[S5] the configuration has priority over the Worker's secret", () => {
  const read = readSettings({ token: TOKEN }, { token: "MTAx.Fake-2.another-token" });
  assert.ok(read.ok && read.settings.token === TOKEN);
  assert.equal(botOfToken(TOKEN), "MTAw");
  const secret = readSettings({}, { token: TOKEN });
  assert.ok(secret.ok && secret.settings.origin === undefined);
});
test("[S18] a session is resumed only at Discord", () => {
  assert.equal(isGatewayAddress("wss://gateway-us-east1-b.discord.gg", undefined), true);
  for (const address of ["wss://discord.gg.evil.example", "ws://gateway.discord.gg", "wss://evil.example/discord.gg", 5, ""])
    assert.equal(isGatewayAddress(address, undefined), false, String(address));
  assert.equal(isGatewayAddress("ws://127.0.0.1:9/x", "http://127.0.0.1:9"), true);
  assert.equal(isGatewayAddress("ws://127.0.0.2:9/x", "http://127.0.0.1:9"), false);
});
