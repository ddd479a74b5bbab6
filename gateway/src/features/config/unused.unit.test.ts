import assert from "node:assert/strict";
import { test } from "node:test";
import type { GsvConfig } from "../../../../protocol/gen/types.ts";
import { unpricedLimits, unusedSettings } from "./unused.ts";

const warned = (path: string, config: GsvConfig, channels: readonly string[] = ["whatsapp", "discord"]): readonly string[] =>
  unusedSettings(path, config, channels);

test("[F1] a setting of a channel that the gateway does not have is stored with a warning that names those it has", () => {
  const config: GsvConfig = { channels: { telegram: { dmPolicy: "open" }, whatsapp: { dmPolicy: "open" } } };
  const [text, ...more] = warned("channels.telegram.dmPolicy", config);
  assert.match(text ?? "", /no channel `telegram`.*has no effect now\. It has discord, whatsapp; `gsv channel list`/);
  assert.deepEqual(more, []);
  assert.deepEqual(warned("channels.whatsapp.dmPolicy", config), []);
  assert.equal(warned("channels", config).length, 1);
  assert.match(warned("channels.discord.dmPolicy", { channels: { discord: {} } }, [])[0] ?? "", /It has none yet/);
  assert.deepEqual(warned("model.id", config), [], "only what the change has touched");
});
test("[F1] [LM13] settings of an embedding service are stored with a warning while the built-in table is used", () => {
  const embeddings = { baseUrl: "http://127.0.0.1:11434/v1", dimensions: 768 };
  const said = warned("memory.embeddings.dimensions", { memory: { embeddings } });
  assert.equal(said.length, 1);
  assert.match(said[0] ?? "", /memory\.embeddings\.baseUrl, memory\.embeddings\.dimensions have no effect now\. Choose a service/);
  assert.equal(warned("memory", { memory: { embeddings: { provider: "built-in", model: "x" } } }).length, 1);
  assert.deepEqual(warned("memory.embeddings.provider", { memory: { embeddings: { ...embeddings, provider: "openai" } } }), []);
  assert.deepEqual(warned("memory.embeddings", { memory: {} }), []);
});
test("[F1] the address of a model's server is stored with a warning while the demo model answers", () => {
  const baseUrl = "http://127.0.0.1:8080/v1";
  for (const path of ["model.baseUrl", "model", "model.provider"])
    for (const model of [{ baseUrl }, { provider: "demo", baseUrl }])
      assert.match(
        warned(path, { model })[0] ?? "",
        /^The demo model answers, so model\.baseUrl has no effect now\. For a server of your own, give it a name: `gsv config set providers\.mine '\{"baseUrl":"http:\/\/127\.0\.0\.1:8080\/v1","wire":"openai-completions"\}'`, then choose its model: `gsv model use mine\/MODEL`\.$/,
      );
  assert.match(
    warned("model.wire", { model: { wire: "openai-completions" } })[0] ?? "",
    /Name the provider: `gsv config set model\.provider/,
  );
  assert.match(warned("model.wire", { model: { baseUrl, wire: "openai-completions" } })[0] ?? "", /model\.baseUrl, model\.wire have/);
  assert.deepEqual(warned("model.thinkLevel", { model: { baseUrl } }), [], "only what the change has touched");
  assert.deepEqual(warned("model.baseUrl", { model: { provider: "mine", baseUrl } }), []);
  assert.deepEqual(warned("model", { model: { provider: "demo" } }), []);
});
test("[F1] a provider of the owner's is stored with a warning while the demo model answers and no model is of it", () => {
  const providers = {
    mine: { baseUrl: "http://127.0.0.1:8080/v1", wire: "openai-completions" },
    other: { baseUrl: "http://127.0.0.1:1/v1", wire: "openai-completions" },
  } as const;
  assert.match(
    warned("providers.mine", { providers })[0] ?? "",
    /so providers\.mine has no effect until its model is chosen: `gsv model use mine\/MODEL`\.$/,
  );
  assert.equal(warned("providers", { providers }).length, 2);
  const used = { provider: "mine", id: "x" };
  for (const config of [
    { model: { provider: "groq" } },
    { model: { provider: "demo", fallbacks: [used] } },
    { compaction: { model: used } },
  ] satisfies GsvConfig[])
    assert.deepEqual(warned("providers.mine.baseUrl", { ...config, providers }), []);
});
test("[F1] a place of a cloud that has another form than its places is stored with a warning", () => {
  for (const awsRegion of ["eu-central-1", "us-gov-west-1", "ap-southeast-2", "us-iso-east-1"])
    assert.deepEqual(warned("cloud.awsRegion", { cloud: { awsRegion } }), [], awsRegion);
  for (const awsRegion of ["nonsense", "eu-central", "EU-CENTRAL-1", "europe-west4"])
    assert.match(warned("cloud.awsRegion", { cloud: { awsRegion } })[0] ?? "", /does not look like a region of AWS/, awsRegion);
  for (const vertexLocation of ["global", "us", "europe-west4", "us-central1"])
    assert.deepEqual(warned("cloud", { cloud: { vertexLocation } }), [], vertexLocation);
  assert.equal(warned("cloud", { cloud: { vertexLocation: "moon", awsRegion: "moon" } }).length, 2);
  assert.equal(warned("cloud.vertexLocation", { cloud: { vertexLocation: "moon", awsRegion: "moon" } }).length, 1);
});
test("[SP3] a limit in dollars is stored with a warning while the model has no price", () => {
  const model = { provider: "openai", id: "fake-1" };
  const config: GsvConfig = { limits: { runCostUsd: 1, dayTokens: 5, dayCostUsd: 2 } };
  const said = (path: string, isPriced = false): string => unpricedLimits(path, config, model, isPriced).join();
  assert.match(
    said("limits.dayCostUsd"),
    /^`openai\/fake-1` has no known price, so limits\.dayCostUsd does not limit its calls\. .*limits\.dayTokens 1000000`.*model\.price/,
  );
  for (const path of ["limits", "model", "model.id", "model.price"])
    assert.match(said(path), /limits\.runCostUsd, limits\.dayCostUsd do not limit/);
  for (const path of ["limits.dayTokens", "model.baseUrl", "userTimezone", "limits.monthCostUsd"]) assert.equal(said(path), "", path);
  assert.equal(said("limits.dayCostUsd", true), "");
  assert.deepEqual(unpricedLimits("model.id", {}, model, false), [], "the limits that are built in warn of nothing");
});
