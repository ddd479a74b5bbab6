/** Stands in for packages of Node in the bundle, which pi-ai's adapter for Bedrock imports and uses on Node only. */
export class NodeHttpHandler {}
export class HttpProxyAgent {}
export class HttpsProxyAgent {}
