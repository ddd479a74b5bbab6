import assert from "node:assert/strict";
import { test } from "node:test";
import { runIdOf } from "./inbound-message.ts";

test("a message that is repeated after an update has the same run id; other messages have another", () => {
  assert.equal(runIdOf("whatsapp:default:dm:491701234567:3EB0A9"), "1ynjf84x6x1qq");
  assert.equal(runIdOf("discord:default:channel:1:2"), "lc11fom6u17u");
  const ids = new Set(Array.from({ length: 10_000 }, (_, n) => runIdOf(`discord:default:channel:1:${n}`)));
  assert.equal(ids.size, 10_000);
});
