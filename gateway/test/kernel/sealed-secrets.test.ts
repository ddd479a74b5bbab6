/** Secret settings are encrypted where they are stored. */
import { reset, runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { readSealingKeys, type ReadKeys } from "../../../protocol/runtime/sealing.ts";
import { Config } from "../../src/kernel/config/store.ts";
import { client, gateway, type Peer, seed } from "../support/gateway.ts";
import { evict } from "../support/evict.ts";

const CANARY = "canary-0123456789-of-the-provider";
let admin: Peer;
beforeEach(async () => {
  await reset();
  await seed();
  admin = await client();
});

const keys = (...words: readonly string[]): ReadKeys => readSealingKeys(words.join(" "));
const FIRST = keys("01".repeat(32));
const SECOND = keys("02".repeat(32));
const BOTH = keys("02".repeat(32), "01".repeat(32));
const NONE = keys();

/** Everything that the gateway stores, as it is stored. */
const stored = (): Promise<Record<string, unknown>> =>
  runInDurableObject(gateway(), (_gateway, state) => Object.fromEntries(state.storage.kv.list<unknown>({ prefix: "config:" })));
const inStore = async (text: string): Promise<boolean> => JSON.stringify(await stored()).includes(text);
const withKeys = <T>(keys: ReadKeys, work: (config: Config, secrets: readonly string[], storage: DurableObjectStorage) => T): Promise<T> =>
  runInDurableObject(gateway(), (_gateway, { storage }) => {
    const secrets: string[] = [];
    const nonce = (): Uint8Array => crypto.getRandomValues(new Uint8Array(12));
    const config = new Config(storage, (values) => secrets.splice(0, secrets.length, ...values), { keys, nonce });
    return work(config, secrets, storage);
  });

describe("[A7] stored secrets", () => {
  test("are sealed, are used by a model call, and survive a restart", async () => {
    await admin.ok("config.set", { path: "apiKeys.anthropic", value: CANARY });
    await admin.ok("config.set", { path: "model.headers", value: { "X-Key": `${CANARY}-header` } });
    expect(await inStore(CANARY)).toBe(false);
    expect((await stored())["config:apiKeys"]).toEqual({ anthropic: expect.stringMatching(/^gsv-sealed:1:/) });
    await evict(gateway(), { webSockets: "hibernate" });
    expect(await gateway().modelAccess(["anthropic"])).toEqual({
      apiKeys: { anthropic: CANARY },
      headers: { "X-Key": `${CANARY}-header` },
    });
  });

  test("of an earlier version are read plain, and sealed when the gateway starts", async () => {
    await runInDurableObject(gateway(), (_gateway, { storage }) => {
      storage.kv.put("config:apiKeys", { anthropic: CANARY, openai: "ключ" });
      storage.kv.put("config:model", { provider: "anthropic", id: "m", headers: { "X-Key": `${CANARY}-header` } });
    });
    await evict(gateway(), { webSockets: "hibernate" });
    expect(await gateway().modelAccess(["anthropic", "openai"])).toEqual({
      apiKeys: { anthropic: CANARY, openai: "ключ" },
      headers: { "X-Key": `${CANARY}-header` },
    });
    expect(await inStore(CANARY)).toBe(false);
    expect(await inStore("ключ")).toBe(false);
    expect((await stored())["config:model"]).toMatchObject({ provider: "anthropic", id: "m" });
  });

  test("one that was moved to another setting, or changed, is not used and is named", async () => {
    await admin.ok("config.set", { path: "apiKeys", value: { anthropic: CANARY, openai: "sk-other-0123456789" } });
    await runInDurableObject(gateway(), (_gateway, { storage }) => {
      const { anthropic = "", openai = "" } = storage.kv.get<Record<string, string>>("config:apiKeys") ?? {};
      storage.kv.put("config:apiKeys", { openai: anthropic, anthropic: `${openai.slice(0, -1)}${openai.endsWith("A") ? "B" : "A"}` });
    });
    await evict(gateway(), { webSockets: "hibernate" });
    expect((await gateway().modelAccess(["anthropic", "openai"]))?.apiKeys).toEqual({});
    expect(await admin.ok("config.get")).toMatchObject({ unreadable: ["apiKeys.openai", "apiKeys.anthropic"] });
  });

  test("are sealed again under a new first key", () =>
    withKeys(FIRST, (first, _secrets, storage) => {
      expect(first.set("apiKeys.anthropic", CANARY).ok).toBe(true);
      const nonce = (): Uint8Array => crypto.getRandomValues(new Uint8Array(12));
      const both = new Config(storage, () => undefined, { keys: BOTH, nonce });
      expect([both.sealStored(), both.sealStored()]).toEqual([1, 0]);
      const second = new Config(storage, () => undefined, { keys: SECOND, nonce });
      expect(second.access(["anthropic"]).apiKeys).toEqual({ anthropic: CANARY });
    }));

  test("a crash in the middle of sealing leaves the plain ones, which are read and sealed next time", () =>
    withKeys(FIRST, (config, _secrets, storage) => {
      storage.kv.put("config:apiKeys", { anthropic: CANARY });
      storage.kv.put("config:model", { headers: { "X-Key": CANARY } });
      const put = storage.kv.put.bind(storage.kv);
      const puts = vi.spyOn(storage.kv, "put");
      // The overwriting and the sealing write two values each.
      for (let failing = 1; failing <= 4; failing++) {
        let count = 0;
        puts.mockImplementation((name: string, value: unknown) => {
          if (++count === failing) throw new Error("crash");
          put(name, value);
        });
        expect(() => config.sealStored()).toThrow("crash");
        expect(storage.kv.get("config:apiKeys")).toEqual({ anthropic: CANARY });
      }
      puts.mockRestore();
      expect(config.sealStored()).toBe(2);
      expect(JSON.stringify([...storage.kv.list({ prefix: "config:" })])).not.toContain(CANARY);
      expect(config.access(["anthropic"])).toEqual({ apiKeys: { anthropic: CANARY }, headers: { "X-Key": CANARY } });
    }));
});

describe("[A9] without its key", () => {
  beforeEach(() =>
    withKeys(FIRST, (config) => {
      for (const name of ["anthropic", "openai"]) expect(config.set(`apiKeys.${name}`, `${CANARY}-${name}`).ok).toBe(true);
    }),
  );

  test("a secret is not in force, is named, and comes back with its key; other settings change meanwhile", async () => {
    await withKeys(SECOND, (config, secrets) => {
      expect(config.unreadable()).toEqual(["apiKeys.anthropic", "apiKeys.openai"]);
      expect(config.access(["anthropic"]).apiKeys).toEqual({});
      expect(secrets).toEqual([]);
      expect(config.set("userTimezone", "Europe/Berlin").ok).toBe(true);
      expect(config.set("apiKeys.google", "sk-new-0123456789").ok).toBe(true);
      expect(config.sealStored()).toBe(0);
    });
    await withKeys(BOTH, (config) => {
      expect(config.unreadable()).toEqual([]);
      expect(config.access(["anthropic", "openai", "google"]).apiKeys).toEqual({
        anthropic: `${CANARY}-anthropic`,
        openai: `${CANARY}-openai`,
        google: "sk-new-0123456789",
      });
      expect(config.timeZone()).toBe("Europe/Berlin");
    });
  });

  test("one can be entered again or removed, alone and with all others", () =>
    withKeys(SECOND, (config) => {
      expect(config.set("apiKeys.anthropic", "sk-again-0123456789").ok).toBe(true);
      expect(config.unreadable()).toEqual(["apiKeys.openai"]);
      expect(config.unset("apiKeys.openai")).toMatchObject({ ok: true, value: { wasSet: true } });
      expect(config.unreadable()).toEqual([]);
      expect(config.access(["anthropic", "openai"]).apiKeys).toEqual({ anthropic: "sk-again-0123456789" });
    }));

  test("setting all of them replaces those that cannot be opened", () =>
    withKeys(SECOND, (config) => {
      expect(config.set("apiKeys", { google: "sk-new-0123456789" }).ok).toBe(true);
      expect(config.unreadable()).toEqual([]);
    }));

  test.each([
    ["no key", NONE, "has no key"],
    ["keys that are none", keys("5e"), "SEALING_KEYS"],
  ])("with %s no secret is stored, with the reason, and the rest works", (_what, present, words) =>
    withKeys(present, (config, _secrets, storage) => {
      const refused = config.set("apiKeys.google", CANARY);
      expect(refused).toMatchObject({ ok: false, error: { reason: "config.no_sealing_key" } });
      expect(refused.ok ? "" : refused.error.message).toContain(words);
      expect(JSON.stringify([...storage.kv.list({ prefix: "config:" })])).not.toContain(CANARY);
      expect(config.set("userTimezone", "Europe/Berlin").ok).toBe(true);
      expect(config.unreadable()).toHaveLength(2);
    }),
  );

  test("a plain secret of an earlier version is read until a key is there", async () => {
    await withKeys(NONE, (config, secrets, storage) => {
      storage.kv.put("config:apiKeys", { openai: CANARY });
      expect(config.sealStored()).toBe(0);
      expect(config.access(["openai"]).apiKeys).toEqual({ openai: CANARY });
      expect(secrets).toEqual([CANARY]);
      expect(config.set("userTimezone", "Europe/Paris").ok).toBe(true);
    });
    await withKeys(FIRST, (config) => {
      expect(config.sealStored()).toBe(1);
      expect(config.access(["openai"]).apiKeys).toEqual({ openai: CANARY });
    });
  });
});
