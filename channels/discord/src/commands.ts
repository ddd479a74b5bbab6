/** The slash commands that the bot offers. Data only; what they do is the gateway's business. */

interface Command {
  readonly name: string;
  readonly description: string;
  readonly options?: readonly {
    /** 3: text. */
    readonly type: 3;
    readonly name: string;
    readonly description: string;
    readonly required: boolean;
    readonly max_length: number;
  }[];
}
export const APPLICATION_COMMANDS: readonly Command[] = [
  { name: "new", description: "Begin a new conversation. The old one is kept." },
  { name: "stop", description: "Stop what the agent is doing." },
  { name: "status", description: "How the conversation and the agent stand." },
  {
    name: "model",
    description: "Show the model, or choose another.",
    options: [{ type: 3, name: "name", description: "For example anthropic/claude-sonnet-4-5", required: false, max_length: 200 }],
  },
  { name: "help", description: "What you can say." },
];
