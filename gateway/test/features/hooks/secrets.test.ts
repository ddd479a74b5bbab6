/**
 * Secrets of hooks are returned once, stored sealed, hidden, and never shared by two hooks. The gateway, its alarm and its sessions are
 * real; the model and the clock are fakes.
 */
import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { client, gateway } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";
import { hookStage, RUN } from "./support.ts";

const { stage, add, deliver, show } = hookStage();

describe("[HK1] [S5] [A7] secrets", () => {
  it("a secret is returned once, stored sealed, and hidden in the log and in prompts", async () => {
    const { secret = "" } = await add();
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const said = JSON.stringify([
      await stage.peer.ok("hook.list"),
      await show(),
      await stage.peer.ok("audit.list"),
      await stage.peer.ok("hook.test", { name: "gh" }),
    ]);
    expect(said).not.toContain(secret);
    const stored = await runInDurableObject(gateway(), (_gateway, state) => [...state.storage.sql.exec("SELECT secret FROM hooks")]);
    expect(JSON.stringify(stored)).toMatch(/gsv-sealed:1:/);
    expect(JSON.stringify(stored)).not.toContain(secret);
    const known = () => runInDurableObject(gateway(), (object) => object.secretValues());
    expect(await known()).toContain(secret);
    await evict(gateway());
    expect(await known()).toContain(secret);
    stage.peer = await client();
    await stage.peer.ok("hook.remove", { name: "gh" });
    expect(await known()).not.toContain(secret);
  });
  it("a secret of the sender's own is not returned, and an impossible one is refused", async () => {
    expect((await add({ form: "github", secret: "my own long secret" })).secret).toBeUndefined();
    expect(await deliver("my own long secret", "d1", {}, "github")).toBe("202 accepted");
    const refused = async (more: object) =>
      (await stage.peer.refused("hook.add", { name: "x", form: "standard", target: RUN, ...more })).reason;
    expect(await refused({ secret: "my own long secret" })).toBe("hook.bad_secret");
    expect(await refused({ form: "stripe" })).toBe("hook.bad_secret");
    expect(await refused({ name: "gh" })).toBe("hook.exists");
    expect(await refused({ only: ["action"] })).toBe("hook.bad_template");
    expect(await refused({ target: { kind: "run", spec: { mode: "task", message: "{{secret}}" } } })).toBe("hook.bad_template");
    expect(await refused({ target: { kind: "job", jobId: "none" } })).toBe("cron.not_found");
    expect(await refused({ agentId: "absent" })).toBe("agent.unknown");
    expect(await refused({ target: { kind: "run", spec: { mode: "task", message: "x", to: "nowhere" } } })).toBe("channel.unknown");
  });
  it("[HK2] a secret of another hook is refused, so that what was signed for one hook counts at no other", async () => {
    const secret = "my own long secret";
    await add({ form: "github", secret });
    const twice = await stage.peer.refused("hook.add", { name: "deploy", form: "github", target: RUN, secret });
    expect(twice.reason).toBe("hook.bad_secret");
    expect(await deliver(secret, "d1", {}, "github", "deploy")).toBe("401 hook.refused");
    await stage.peer.ok("hook.remove", { name: "gh" });
    await add({ name: "deploy", form: "github", secret });
  });
  it("[A9] without its key the hook refuses, says so in the list, and is not lost", async () => {
    const { secret = "" } = await add();
    await runInDurableObject(gateway(), (_gateway, state) => {
      state.storage.sql.exec("UPDATE hooks SET secret = replace(secret, substr(secret, 14, 16), '0123456789abcdef')");
    });
    expect(await deliver(secret, "d1")).toBe("401 hook.refused");
    expect((await show()).hook.problem).toContain("can't be opened here. `gsv hook remove ");
    expect((await stage.peer.refused("hook.test", { name: "gh" })).reason).toBe("hook.no_target");
  });
});
