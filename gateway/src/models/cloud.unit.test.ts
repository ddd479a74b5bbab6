import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { awsKeys, cloudAddress, serviceAccount } from "./cloud.ts";

const account = (more: object = {}): string => JSON.stringify({ client_email: "a@x", private_key: "PEM", ...more });
const address = (provider: string, template = "", cloud = {}, key?: string): string => {
  const found = cloudAddress(provider, "Name", template, cloud, key);
  return found.ok ? found.value : `${found.error.reason}: ${found.error.message}`;
};

describe("addresses of clouds", () => {
  it("Google: with the project of the settings or of the key file; an API key stands for one", () => {
    assert.equal(address("google-vertex", "", {}, "api-key"), "https://aiplatform.googleapis.com/v1/publishers/google");
    const own = "/v1/projects/p1/locations/global/publishers/google";
    assert.equal(address("google-vertex", "", {}, account({ project_id: "p1" })), `https://aiplatform.googleapis.com${own}`);
    assert.equal(
      address("google-vertex", "", { vertexProject: "p1" }, account({ project_id: "p2" })),
      `https://aiplatform.googleapis.com${own}`,
    );
    assert.match(address("google-vertex", "", {}, account()), /^model\.not_configured: .*the id of your Google Cloud project/);
    assert.equal(
      address("google-vertex", "", { vertexProject: "p1", vertexLocation: "eu" }),
      "https://eu-aiplatform.googleapis.com/v1/projects/p1/locations/eu/publishers/google",
    );
  });
  it("Cloudflare: what the address names must be set", () => {
    const template = "https://x/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}";
    const ids = { cloudflareAccountId: "acc", cloudflareGatewayId: "gate" };
    assert.equal(address("cloudflare-ai-gateway", template, ids), "https://x/acc/gate");
    assert.match(address("cloudflare-ai-gateway", template, { cloudflareAccountId: "acc" }), /the name of your AI Gateway/);
    assert.match(address("cloudflare-ai-gateway", template, { cloudflareGatewayId: "gate" }), /the id of your Cloudflare account/);
    assert.equal(address("groq", "https://x/v1"), "https://x/v1");
  });
  it("Amazon and Azure: by region and by resource", () => {
    assert.equal(address("amazon-bedrock", "https://usual"), "https://usual");
    assert.equal(address("amazon-bedrock", "https://usual", { awsRegion: "eu-west-1" }), "https://bedrock-runtime.eu-west-1.amazonaws.com");
    assert.match(address("azure-openai-responses"), /the name of your Azure resource/);
  });
});

describe("keys of clouds", () => {
  it("Google: a key file is an object with an address and a key, anything else is an API key", () => {
    const tokenUri = "https://oauth2.googleapis.com/token";
    assert.deepEqual(serviceAccount(` ${account()}`), { email: "a@x", privateKey: "PEM", tokenUri });
    assert.deepEqual(serviceAccount(account({ project_id: "p", token_uri: "https://t" })), {
      email: "a@x",
      privateKey: "PEM",
      tokenUri: "https://t",
      project: "p",
    });
    for (const none of [undefined, "key", "{", "[]", account({ client_email: 5 }), account({ private_key: undefined })])
      assert.equal(serviceAccount(none), undefined, none);
  });
  it("Amazon: a pair of keys, with or without a session's token; anything else is an API key", () => {
    const [accessKeyId, secretAccessKey] = ["AKIAABCDEFGH", "secret"];
    assert.deepEqual(awsKeys("AKIAABCDEFGH:secret"), { accessKeyId, secretAccessKey });
    assert.deepEqual(awsKeys("AKIAABCDEFGH:secret:token"), { accessKeyId, secretAccessKey, sessionToken: "token" });
    for (const none of [undefined, "", "key", "AKIAABCDEFGH", "AKIAABCDEFGH:", "AKIA:secret", "key:secret"])
      assert.equal(awsKeys(none), undefined, none);
  });
});
