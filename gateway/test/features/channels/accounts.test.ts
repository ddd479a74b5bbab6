/** The owner starts, stops and logs in channels, and sees the status of each account. The channel is a fake service. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ChannelService } from "../../../../protocol/gen/services.ts";
import { parts } from "../../../src/app/compose.ts";
import { channelEntrypoint, type Peer } from "../../support/gateway.ts";
import { ACCOUNT, dm, inboundStage } from "./support.ts";

let service: ChannelService;
let owner: Peer;

beforeEach(async () => {
  ({ service, owner } = await inboundStage());
  // Tests put another service in its place.
  vi.spyOn(parts, "channel").mockImplementation((_env, name) => (name === "test" ? service : undefined));
});
afterEach(() => {
  vi.restoreAllMocks();
});

const entrypoint = channelEntrypoint;

describe("the owner manages channels", () => {
  test("start, status, login and stop work", async () => {
    expect(await owner.ok("channel.start", { channel: "test" })).toEqual({ ok: true, channel: "test", accountId: "default" });
    expect(await owner.ok("channel.status", { channel: "test" })).toMatchObject({ accounts: [{ accountId: "default", connected: true }] });
    expect(await owner.ok("channel.login", { channel: "Test" })).toMatchObject({ login: { state: "qr", qr: "QR-TEXT" } });
    expect(await owner.ok("channel.stop", { channel: "test" })).toMatchObject({ ok: true });
    expect(await owner.ok("channels.list")).toMatchObject({
      channels: [{ channel: "test", accountId: "default" }],
      count: 1,
      bound: ["test"],
    });
    const { entries } = await owner.ok<{ entries: { action: string; target?: string }[] }>("audit.list");
    expect(entries.filter(({ action }) => action.startsWith("channel.")).map(({ action, target }) => [action, target])).toEqual([
      ["channel.stop", "test"],
      ["channel.login", "Test"],
      ["channel.start", "test"],
    ]);
  });
  test("[F35] a login has its code where the reference's client looks for it: as the text that it draws", async () => {
    expect(await owner.ok("channel.login", { channel: "test", accountId: "default" })).toMatchObject({
      ok: true,
      qrDataUrl: "QR-TEXT",
      message: "Scan this.",
    });
    service.login = async () => ({ state: "code", code: "ABCD-EFGH", message: "Type this." });
    expect(await owner.ok("channel.login", { channel: "test" })).not.toHaveProperty("qrDataUrl");
  });
  test("an account that does not answer does not hide the others", async () => {
    for (const accountId of ["work", "home"]) {
      const entry = entrypoint();
      await entry.inbound({ account: { ...ACCOUNT, accountId }, inbound: dm("me", "hi") });
    }
    const { status } = service;
    service = {
      ...service,
      status: async (params) => (params.accountId === "work" ? Promise.reject(new Error("SECRET-DETAIL")) : status(params)),
    };
    const all = await owner.ok("channel.status", { channel: "test" });
    expect(all).toMatchObject({
      accounts: [
        { accountId: "home", connected: true },
        { accountId: "work", connected: false, error: expect.stringContaining("did not answer") },
      ],
    });
    expect(JSON.stringify(all)).not.toContain("SECRET-DETAIL");
    expect(await owner.refused("channel.status", { channel: "test", accountId: "work" })).toMatchObject({ reason: "channel.failed" });
  });
  test("an unknown channel and a failing channel are errors", async () => {
    expect(await owner.refused("channel.start", { channel: "fax" })).toMatchObject({
      reason: "channel.unknown",
      hint: expect.stringContaining("test"),
    });
    service = { ...service, start: async () => Promise.reject(new Error("SECRET-DETAIL")) };
    const error = await owner.refused("channel.start", { channel: "test" });
    expect(error.reason).toBe("channel.failed");
    expect(JSON.stringify(error)).not.toContain("SECRET-DETAIL");
  });
  test("[CH26] a logout that the platform did not confirm says so and what to do, and a failed one that it failed", async () => {
    const { logout } = service;
    service = { ...service, logout: async (params) => ({ ...(await logout(params)), ...params, logoutUnconfirmed: true }) };
    expect(await owner.refused("channel.logout", { channel: "test", accountId: "work" })).toMatchObject({
      reason: "channel.failed",
      message: "The account work of test is stopped, but the platform did not confirm the logout.",
      hint: expect.stringContaining("`gsv channel logout test --account work`"),
    });
    // Stopped before, so that its status says nothing about the logout.
    const { status } = service;
    service = {
      ...service,
      logout: async () => Promise.reject(new Error("SECRET-DETAIL")),
      status: async (params) => (await status(params)).map((account) => ({ ...account, extra: { started: false } })),
    };
    const error = await owner.refused("channel.logout", { channel: "test" });
    expect(error).toMatchObject({ reason: "channel.failed", message: "The channel test did not answer correctly." });
    expect(JSON.stringify(error)).not.toContain("SECRET-DETAIL");
  });
});
