/** The list of migrations that all features shared: its order and names are fixed, because databases count positions in it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CHANNEL_HISTORY } from "../features/channels/migrations.ts";
import { NODE_HISTORY } from "../features/nodes/migrations.ts";
import { SESSION_HISTORY } from "../features/sessions/migrations.ts";
import { SKILL_HISTORY } from "../features/skills/migrations.ts";
import { sharedMigrations } from "./migrations.ts";
import { KERNEL_TABLES } from "./tables.ts";

const up = (): void => undefined;

describe("the shared list of migrations", () => {
  test("has these names in this order, permanently", () => {
    const all = [...KERNEL_TABLES.history, ...SESSION_HISTORY, ...NODE_HISTORY, ...CHANNEL_HISTORY, ...SKILL_HISTORY];
    assert.deepEqual(
      sharedMigrations(all).map(({ name }) => name),
      [
        "registries, pending calls, audit",
        "pending calls: the grace beside the deadline",
        "skills: what was approved",
        "channels: accounts, messages taken in, people",
        "sessions: whose they are",
        "channels: forgetting",
        "channels: deliveries",
        "channels: conversations on platforms",
        "channels: programs that write in a row",
      ],
    );
  });
  test("a position that is missing or has two names throws", () => {
    assert.throws(() => sharedMigrations([{ position: 2, name: "b", up }]), /position 1/);
    assert.throws(
      () =>
        sharedMigrations([
          { position: 1, name: "a", up },
          { position: 1, name: "b", up },
        ]),
      /different names/,
    );
  });
});
