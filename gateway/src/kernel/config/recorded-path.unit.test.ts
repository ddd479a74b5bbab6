import assert from "node:assert/strict";
import { test } from "node:test";
import { recordedPath } from "./schema.ts";

test("[F21] the audit keeps the path of a setting, and nothing of a secret that was typed into it", () => {
  for (const path of ["model.provider", "apiKeys.openai", "agents.list[0].id", 'session.identityLinks["a.b"]', "limits"])
    assert.equal(recordedPath(path), path === "agents.list[0].id" ? "agents.list.0.id" : path);
  for (const [path, kept] of [
    ["sk-ant-api03-canary", "*"],
    ["apiKeys.sk-ant-api03-canary", "apiKeys.*"],
    ["apiKeys.openai.sk-canary", "apiKeys.openai.*"],
    ["model.headers.gsv_admin_abc_canary", "model.headers.*"],
    [`model.headers.${"canary".repeat(8)}`, "model.headers.*"],
    ["model.canary.x", "model.*"],
    ["[", "*"],
    ["__proto__.canary", "*"],
  ] as const) {
    assert.equal(recordedPath(path), kept);
    assert.ok(!recordedPath(path).includes("canary"));
  }
});
