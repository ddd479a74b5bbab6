/** Stands in for packages of Node.js in the bundle, which pi-ai's adapter for Bedrock imports and uses on Node.js only. */
export class NodeHttpHandler {}
export class HttpProxyAgent {}
export class HttpsProxyAgent {}
