/**
 * Addresses of cloud providers, which depend on the owner's account, region or project (`cloud.*`), and what their keys may look like.
 * PURE. Its errors say what to set; they never contain a key.
 */
import type { CloudConfig } from "../../../protocol/gen/types.ts";
import { isJsonObject } from "../../../protocol/runtime/json-object.ts";
import { failure, type Result } from "../ports/result.ts";

/** The provider that the `AI` binding of Cloudflare serves without a key. */
export const WORKERS_AI = "cloudflare-workers-ai";

const missing = (name: string, needs: string, setting: string, provider: string): Result<never> =>
  failure(
    "model.not_configured",
    `${name} needs ${needs}.`,
    `Run \`gsv config set cloud.${setting} VALUE\`, and set the key: \`gsv config set apiKeys.${provider} -\`.`,
  );

/** Fills the places of a catalogue's address. */
export function cloudAddress(
  provider: string,
  name: string,
  template: string,
  cloud: CloudConfig = {},
  apiKey: string | undefined,
): Result<string> {
  const at = (value: string): Result<string> => ({ ok: true, value });
  switch (provider) {
    case "amazon-bedrock":
      return at(cloud.awsRegion === undefined ? template : `https://bedrock-runtime.${cloud.awsRegion}.amazonaws.com`);
    case "azure-openai-responses":
      if (cloud.azureResource === undefined) return missing(name, "the name of your Azure resource", "azureResource", provider);
      return at(`https://${cloud.azureResource}.openai.azure.com/openai/v1`);
    case "google-vertex": {
      const account = serviceAccount(apiKey);
      const project = cloud.vertexProject ?? account?.project;
      if (project === undefined && account !== undefined)
        return missing(name, "the id of your Google Cloud project", "vertexProject", provider);
      const location = cloud.vertexLocation ?? "global";
      const host = location === "global" ? "aiplatform.googleapis.com" : `${location}-aiplatform.googleapis.com`;
      // Without a project, an API key stands for it.
      const scope = project === undefined ? "" : `/projects/${project}/locations/${location}`;
      return at(`https://${host}/v1${scope}/publishers/google`);
    }
    default: {
      if (template.includes("{CLOUDFLARE_ACCOUNT_ID}") && cloud.cloudflareAccountId === undefined)
        return missing(name, "the id of your Cloudflare account", "cloudflareAccountId", provider);
      if (template.includes("{CLOUDFLARE_GATEWAY_ID}") && cloud.cloudflareGatewayId === undefined)
        return missing(name, "the name of your AI Gateway", "cloudflareGatewayId", provider);
      return at(
        template
          .replace("{CLOUDFLARE_ACCOUNT_ID}", cloud.cloudflareAccountId ?? "")
          .replace("{CLOUDFLARE_GATEWAY_ID}", cloud.cloudflareGatewayId ?? ""),
      );
    }
  }
}

export interface ServiceAccount {
  readonly email: string;
  /** PEM, PKCS #8. */
  readonly privateKey: string;
  readonly tokenUri: string;
  readonly project?: string;
}
/** Google's key file of a service account, stored whole as the key. */
export function serviceAccount(key: string | undefined): ServiceAccount | undefined {
  if (key === undefined || !key.trimStart().startsWith("{")) return undefined;
  let file: unknown;
  try {
    file = JSON.parse(key);
  } catch {
    return undefined;
  }
  if (!isJsonObject(file)) return undefined;
  const { client_email: email, private_key: privateKey, project_id: project, token_uri: tokenUri } = file;
  if (typeof email !== "string" || typeof privateKey !== "string") return undefined;
  return {
    email,
    privateKey,
    tokenUri: typeof tokenUri === "string" ? tokenUri : "https://oauth2.googleapis.com/token",
    ...(typeof project === "string" ? { project } : {}),
  };
}

export interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}
/** `ACCESS_KEY_ID:SECRET[:SESSION_TOKEN]`; any other key is a Bedrock API key. */
export function awsKeys(key: string | undefined): AwsKeys | undefined {
  const [accessKeyId = "", secretAccessKey = "", sessionToken] = (key ?? "").split(":");
  if (!/^A[KS]IA[A-Z0-9]{8,}$/.test(accessKeyId) || secretAccessKey === "") return undefined;
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
}
