/** `/status` and `/model` name the model that is asked, not what stands for it in the configuration. */
import { afterEach, expect, it, vi } from "vitest";
import { providerInfo } from "../../src/models/catalog.ts";
import { newSession, says, Stage, value } from "./support.ts";

afterEach(() => vi.restoreAllMocks());

it("[R6] a provider chosen without a model is shown with its usual one", async () => {
  const stage = new Stage().open();
  stage.auto = () => says("hello");
  const session = newSession();
  value(await session.send("first"));
  await stage.ended("run-first");
  value(await session.port.patch({ settings: { model: { provider: "anthropic", id: "demo" } } }));
  const usual = `anthropic/${providerInfo("anthropic")?.defaultModel ?? "?"}`;
  expect(usual).toMatch(/^anthropic\/claude/);
  for (const command of ["/status", "/model"]) {
    const answer = value(await session.send(command, command));
    expect(answer).toMatchObject({ status: "command", response: expect.stringContaining(usual) });
  }
});
