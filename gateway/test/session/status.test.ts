/** Choosing a model by its provider or its id alone, and that `/status` and `/model` show the model that is really called. */
import { afterEach, expect, it, vi } from "vitest";
import { providerInfo } from "../../src/models/catalog.ts";
import { newSession, says, Stage, value } from "./support.ts";

afterEach(() => vi.restoreAllMocks());

it("[R6] [F34] [F36] a provider or a model id alone selects a model: in session.patch, in /model and in a directive", async () => {
  const stage = new Stage().open();
  const models: string[] = [];
  stage.auto = ({ model }) => {
    models.push(`${model.provider}/${model.id}`);
    return says("hello");
  };
  const session = newSession();
  const chosen = async (): Promise<string> => {
    const { model } = value(await session.port.get()).settings;
    return `${model?.provider}/${model?.id}`;
  };
  value(await session.send("first"));
  await stage.ended("run-first");
  value(await session.port.patch({ settings: { model: { provider: "openai" } } }));
  expect(await chosen()).toBe(`openai/${providerInfo("openai")?.defaultModel}`);
  value(await session.port.patch({ settings: { model: { id: "gpt-4o" }, thinkingLevel: "low" } }));
  expect(await chosen()).toBe("openai/gpt-4o");
  expect(value(await session.send("named", "/model claude-haiku-4-5"))).toMatchObject({
    response: expect.stringContaining("anthropic/claude-haiku-4-5"),
  });
  expect(await chosen()).toBe("anthropic/claude-haiku-4-5");
  expect(value(await session.send("asked", "/model no-such"))).toMatchObject({ error: expect.stringContaining("Name it as provider/id") });
  await session.send("once", "hi /m:claude-sonnet-4-5 /t:off");
  await stage.ended("run-once");
  expect(models).toEqual(["demo/demo", "anthropic/claude-sonnet-4-5"]);
});

it("[R6] a provider chosen without a model is shown with its default model", async () => {
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

it("[R6] /model names the model before the first message, too", async () => {
  new Stage().open();
  const session = newSession();
  expect(value(await session.send("a", "/model"))).toEqual({ status: "command", command: "model", response: "The model is demo/demo." });
});

it("[R6] a model that was set for the conversation is marked in /model and /status, until /model default", async () => {
  const stage = new Stage().open();
  stage.auto = () => says("hello");
  const session = newSession();
  value(await session.send("first"));
  await stage.ended("run-first");
  let asked = 0;
  const told = async (command: string) => {
    const answer = value(await session.send(`${++asked}`, command));
    return "response" in answer ? answer.response : undefined;
  };
  expect(await told("/status")).toMatch(/\nModel: demo\/demo(,|\n)/);
  await told("/model anthropic/claude-sonnet-5");
  expect(await told("/model")).toBe(
    "The model is anthropic/claude-sonnet-5, set for this conversation. To go back to the configured one: `/model default`.",
  );
  expect(await told("/status")).toMatch(/\nModel: anthropic\/claude-sonnet-5 \(set for this conversation\)(,|\n)/);
  await told("/model default");
  expect(await told("/model")).toBe("The model is demo/demo.");
  expect(await told("/status")).not.toMatch(/set for this conversation/);
});

it("[R6] a model without its key is refused in /model with how to set it, and chosen in session.patch with a warning", async () => {
  const stage = new Stage().open();
  stage.auto = () => says("hello");
  stage.refusal = {
    reason: "model.not_configured",
    message: "No key is set for Anthropic.",
    hint: "Run `gsv config set apiKeys.anthropic -`.",
  };
  const session = newSession();
  const warning = "No key is set for Anthropic. Run `gsv config set apiKeys.anthropic -`.";
  value(await session.send("first", "/think high"));
  expect(value(await session.send("a", "/model anthropic/claude-sonnet-5"))).toMatchObject({
    status: "command",
    error: `${warning} The model stays as it is.`,
  });
  expect(value(await session.port.get()).settings.model).toBeUndefined();
  expect(value(await session.port.patch({ settings: { model: { provider: "openai", id: "o3" } } }))).toEqual({
    ok: true,
    warnings: [warning],
  });
  expect(value(await session.port.patch({ label: "x" }))).toEqual({ ok: true });
  const text =
    "No key is set for Anthropic. Run `gsv config set apiKeys.anthropic -`, or go back to the configured model: `/model default`.";
  await session.send("b", "hi");
  await stage.ended("run-b");
  const error = stage.news.map(({ payload }) => payload).find((payload) => "state" in payload && payload.state === "error");
  expect(error).toMatchObject({ error: text, hint: text.slice(text.indexOf("Run")) });
  stage.refusal = undefined;
  expect(value(await session.send("c", "/model anthropic/claude-sonnet-5"))).toMatchObject({
    response: "From now on: the model anthropic/claude-sonnet-5.",
  });
});

it("[R6] the demo has one model: another id is refused in /model, in a directive and in session.patch, and a stored one answers", async () => {
  const stage = new Stage().open();
  stage.auto = () => says("hello");
  const session = newSession();
  const said = 'The provider demo has no model "nope". Its only model is `demo/demo`.';
  expect(value(await session.send("a", "/model demo/nope"))).toMatchObject({ error: said });
  expect(await session.send("b", "/model:demo/nope hi")).toMatchObject({ ok: false, error: { reason: "chat.bad_directive" } });
  expect(value(await session.send("c", "/model demo/demo"))).toMatchObject({ response: "From now on: the model demo/demo." });
  expect(await session.port.patch({ settings: { model: { provider: "demo", id: "nope" } } })).toMatchObject({
    ok: false,
    error: { reason: "model.unknown", hint: "Its only model is `demo/demo`." },
  });
});

it("[F6] a model of an unknown provider is refused with the nearest one: in /model, in a directive and in session.patch", async () => {
  const stage = new Stage().open();
  stage.auto = () => says("hello");
  const session = newSession();
  const meant = expect.stringContaining("Did you mean anthropic?");
  expect(value(await session.send("before", "/model anthorpic/claude-sonnet-5"))).toMatchObject({ status: "command", error: meant });
  value(await session.send("first"));
  await stage.ended("run-first");
  expect(value(await session.send("c", "/model anthorpic/claude-sonnet-5"))).toMatchObject({ status: "command", error: meant });
  const none = expect.stringMatching(/There is no provider "bogus"\. Built in are anthropic, openai, /);
  expect(value(await session.send("n", "/model bogus/nothing"))).toMatchObject({ error: none });
  for (const text of ["hi /model:anthorpic/claude-sonnet-5", "/model:anthorpic/claude-sonnet-5"])
    expect(await session.send(text, text)).toMatchObject({ ok: false, error: { reason: "chat.bad_directive", message: meant } });
  expect(await session.port.patch({ settings: { model: { provider: "anthorpic", id: "x" } } })).toMatchObject({
    ok: false,
    error: { reason: "model.unknown", message: meant },
  });
  expect(value(await session.port.get()).settings.model).toBeUndefined();
});
