/** Generated from pi-ai's catalogue by scripts/codegen/model-catalogue.ts (npm run codegen). Do not edit. PURE: data. */

/** Name, addresses (`wire baseUrl`), and a line for each model: id, context window, longest answer, price, kind. */
export const CATALOGUE: Readonly<Record<string, readonly [name: string, endpoints: readonly string[], models: string]>> = {
  "amazon-bedrock": [
    "Amazon Bedrock",
    ["bedrock-converse-stream https://bedrock-runtime.us-east-1.amazonaws.com","bedrock-converse-stream https://bedrock-runtime.eu-central-1.amazonaws.com"],
    `
amazon.nova-2-lite-v1:0 1000000 65535 0.33,2.75,0.0825,0.33 0
amazon.nova-lite-v1:0 300000 10000 0.06,0.24,0.015,0.06 1
amazon.nova-micro-v1:0 128000 10000 0.035,0.14,0.00875,0.035 2
amazon.nova-pro-v1:0 300000 10000 0.8,3.2,0.2,0.8 1
anthropic.claude-fable-5 1000000 128000 10,50,1,12.5 3
anthropic.claude-fable-5-1 1000000 128000 10,50,0.25,12.5 3
anthropic.claude-haiku-4-5-20251001-v1:0 200000 64000 1,5,0.1,1.25 4
anthropic.claude-opus-4-1-20250805-v1:0 200000 32000 15,75,1.5,18.75 0
anthropic.claude-opus-4-5-20251101-v1:0 200000 64000 5,25,0.5,6.25 4
anthropic.claude-opus-4-6-v1 1000000 128000 5.5,27.5,0.55,6.875 5
anthropic.claude-opus-4-7 1000000 128000 5,25,0.5,6.25 6
anthropic.claude-opus-4-8 1000000 128000 5,25,0.5,6.25 6
anthropic.claude-opus-5-5 1000000 128000 4,20,0.2,5 6
anthropic.claude-sonnet-4-5-20250929-v1:0 200000 64000 3,15,0.3,3.75 4
anthropic.claude-sonnet-4-6 1000000 128000 3.3,16.5,0.33,4.125 5
anthropic.claude-sonnet-5 1000000 128000 2,10,0.2,2.5 6
apac.amazon.nova-lite-v1:0 300000 10000 0.063,0.252,0.01575,0.063 1
apac.amazon.nova-micro-v1:0 128000 10000 0.037,0.148,0.00925,0.037 2
apac.amazon.nova-pro-v1:0 300000 10000 0.84,3.36,0.21,0.84 1
apac.anthropic.claude-sonnet-4-20250514-v1:0 200000 64000 3,15,0.3,3.75 0
au.anthropic.claude-haiku-4-5-20251001-v1:0 200000 64000 1.1,5.5,0.11,1.375 4
au.anthropic.claude-opus-4-6-v1 1000000 128000 5.5,27.5,0.55,6.875 5
au.anthropic.claude-opus-4-7 1000000 128000 5.5,27.5,0.55,6.875 6
au.anthropic.claude-opus-4-8 1000000 128000 5.5,27.5,0.55,6.875 6
au.anthropic.claude-opus-5 1000000 128000 5.5,27.5,0.55,6.875 6
au.anthropic.claude-opus-5-5 1000000 128000 4.4,22,0.22,5.5 6
au.anthropic.claude-sonnet-4-5-20250929-v1:0 200000 64000 3.3,16.5,0.33,4.125 4
au.anthropic.claude-sonnet-4-6 1000000 128000 3.3,16.5,0.33,4.125 5
au.anthropic.claude-sonnet-5 1000000 128000 2.2,11,0.22,2.75 6
ca.amazon.nova-lite-v1:0 300000 10000 0.064,0.256,0.016,0.064 1
deepseek.v3-v1:0 163840 81920 0.58,1.68,0,0 7
deepseek.v3.2 163840 81920 0.62,1.85,0,0 7
eu.amazon.nova-2-lite-v1:0 1000000 65535 0.374,3.157,0.0935,0.374 8
eu.amazon.nova-lite-v1:0 300000 10000 0.069,0.276,0.01725,0.069 9
eu.amazon.nova-micro-v1:0 128000 10000 0.04,0.16,0.01,0.04 a
eu.amazon.nova-pro-v1:0 300000 10000 0.92,3.68,0.23,0.92 9
eu.anthropic.claude-fable-5 1000000 128000 11,55,1.1,13.75 b
eu.anthropic.claude-haiku-4-5-20251001-v1:0 200000 64000 1.1,5.5,0.11,1.375 c
eu.anthropic.claude-opus-4-5-20251101-v1:0 200000 64000 5.5,27.5,0.55,6.875 c
eu.anthropic.claude-opus-4-6-v1 1000000 128000 5.5,27.5,0.55,6.875 d
eu.anthropic.claude-opus-4-7 1000000 128000 5.5,27.5,0.55,6.875 e
eu.anthropic.claude-opus-4-8 1000000 128000 5.5,27.5,0.55,6.875 e
eu.anthropic.claude-opus-5 1000000 128000 5.5,27.5,0.55,6.875 e
eu.anthropic.claude-opus-5-5 1000000 128000 4.4,22,0.22,5.5 e
eu.anthropic.claude-sonnet-4-20250514-v1:0 200000 64000 3,15,0.3,3.75 8
eu.anthropic.claude-sonnet-4-5-20250929-v1:0 200000 64000 3.3,16.5,0.33,4.125 c
eu.anthropic.claude-sonnet-4-6 1000000 128000 3.3,16.5,0.33,4.125 d
eu.anthropic.claude-sonnet-5 1000000 128000 2.2,11,0.22,2.75 e
eu.mistral.pixtral-large-2502-v1:0 128000 8192 2,6,0,0 9
global.amazon.nova-2-lite-v1:0 1000000 65535 0.3,2.5,0.075,0.3 0
global.anthropic.claude-fable-5 1000000 128000 10,50,1,12.5 3
global.anthropic.claude-fable-5-1 1000000 128000 10,50,0.25,12.5 3
global.anthropic.claude-haiku-4-5-20251001-v1:0 200000 64000 1,5,0.1,1.25 4
global.anthropic.claude-opus-4-5-20251101-v1:0 200000 64000 5,25,0.5,6.25 4
global.anthropic.claude-opus-4-6-v1 1000000 128000 5,25,0.5,6.25 5
global.anthropic.claude-opus-4-7 1000000 128000 5,25,0.5,6.25 6
global.anthropic.claude-opus-4-8 1000000 128000 5,25,0.5,6.25 6
global.anthropic.claude-opus-5 1000000 128000 5,25,0.5,6.25 6
global.anthropic.claude-opus-5-5 1000000 128000 4,20,0.2,5 6
global.anthropic.claude-sonnet-4-20250514-v1:0 200000 64000 3,15,0.3,3.75 0
global.anthropic.claude-sonnet-4-5-20250929-v1:0 200000 64000 3,15,0.3,3.75 4
global.anthropic.claude-sonnet-4-6 1000000 128000 3,15,0.3,3.75 5
global.anthropic.claude-sonnet-5 1000000 128000 2,10,0.2,2.5 6
global.openai.gpt-5.6-luna 1050000 128000 0.2,1.2,0.02,0.25 f
global.openai.gpt-5.6-sol 1050000 128000 4,20,0.4,5 g
global.openai.gpt-5.6-terra 1050000 128000 2,12,0.2,2.5 g
global.openai.gpt-6-astra 1050000 128000 10,50,1,12.5 f
global.xai.grok-4.6 500000 500000 2,6,0.5,0 0
google.gemma-4-26b-a4b 262144 32768 0.13,0.4,0,0 4
google.gemma-4-31b 262144 32768 0.14,0.4,0,0 4
google.gemma-4-e2b 131072 8192 0.04,0.08,0,0 4
in.openai.gpt-5.6-luna 1050000 128000 0.22,1.32,0.022,0.275 f
in.openai.gpt-5.6-terra 1050000 128000 2.2,13.2,0.22,2.75 g
jp.amazon.nova-2-lite-v1:0 1000000 65535 0.396,3.311,0.099,0.396 0
jp.anthropic.claude-haiku-4-5-20251001-v1:0 200000 64000 1.1,5.5,0.11,1.375 4
jp.anthropic.claude-opus-4-7 1000000 128000 5.5,27.5,0.55,6.875 6
jp.anthropic.claude-opus-4-8 1000000 128000 5.5,27.5,0.55,6.875 6
jp.anthropic.claude-opus-5 1000000 128000 5.5,27.5,0.55,6.875 6
jp.anthropic.claude-opus-5-5 1000000 128000 4.4,22,0.22,5.5 6
jp.anthropic.claude-sonnet-4-5-20250929-v1:0 200000 64000 3.3,16.5,0.33,4.125 4
jp.anthropic.claude-sonnet-4-6 1000000 128000 3.3,16.5,0.33,4.125 5
jp.anthropic.claude-sonnet-5 1000000 128000 2.2,11,0.22,2.75 6
meta.llama3-1-70b-instruct-v1:0 128000 4096 0.72,0.72,0,0 2
meta.llama3-1-8b-instruct-v1:0 128000 4096 0.22,0.22,0,0 2
meta.llama3-3-70b-instruct-v1:0 128000 4096 0.72,0.72,0,0 2
meta.llama4-maverick-17b-instruct-v1:0 1000000 8192 0.24,0.97,0,0 1
meta.llama4-scout-17b-instruct-v1:0 10000000 8192 0.17,0.66,0,0 1
minimax.minimax-m2 204608 128000 0.3,1.2,0,0 7
minimax.minimax-m2.1 204800 131072 0.3,1.2,0,0 7
minimax.minimax-m2.5 196608 98304 0.3,1.2,0,0 7
mistral.devstral-2-123b 256000 8192 0.4,2,0,0 h
mistral.magistral-small-2509 128000 40000 0.5,1.5,0,0 4
mistral.ministral-3-14b-instruct 128000 4096 0.2,0.2,0,0 i
mistral.ministral-3-3b-instruct 256000 8192 0.1,0.1,0,0 i
mistral.ministral-3-8b-instruct 128000 4096 0.15,0.15,0,0 i
mistral.mistral-large-3-675b-instruct 256000 8192 0.5,1.5,0,0 i
mistral.pixtral-large-2502-v1:0 128000 8192 2,6,0,0 1
mistral.voxtral-mini-3b-2507 32768 4096 0.04,0.04,0,0 h
mistral.voxtral-small-24b-2507 32768 8192 0.1,0.3,0,0 h
moonshot.kimi-k2-thinking 262143 16000 0.6,2.5,0,0 7
moonshotai.kimi-k2.5 262143 16384 0.6,3,0,0 4
nvidia.nemotron-nano-12b-v2 128000 8192 0.2,0.6,0,0 i
nvidia.nemotron-nano-3-30b 262144 8192 0.06,0.24,0,0 7
nvidia.nemotron-nano-9b-v2 131072 8192 0.06,0.23,0,0 h
nvidia.nemotron-super-3-120b 262144 131072 0.15,0.65,0,0 7
openai.gpt-5.4 272000 128000 2.75,16.5,0.275,0 f
openai.gpt-5.5 272000 128000 5.5,33,0.55,0 f
openai.gpt-5.6-luna 1050000 128000 0.22,1.32,0.022,0.275 f
openai.gpt-5.6-sol 1050000 128000 4.4,22,0.44,5.5 f
openai.gpt-5.6-terra 1050000 128000 2.2,13.2,0.22,2.75 f
openai.gpt-6-astra 1050000 128000 11,55,1.1,13.75 f
openai.gpt-oss-120b 128000 16384 0.15,0.6,0,0 7
openai.gpt-oss-120b-1:0 128000 16384 0.15,0.6,0,0 7
openai.gpt-oss-20b 128000 16384 0.07,0.3,0,0 7
openai.gpt-oss-20b-1:0 128000 16384 0.07,0.3,0,0 7
openai.gpt-oss-safeguard-120b 128000 16384 0.15,0.6,0,0 7
openai.gpt-oss-safeguard-20b 128000 16384 0.07,0.2,0,0 7
qwen.qwen3-235b-a22b-2507-v1:0 262144 131072 0.22,0.88,0,0 h
qwen.qwen3-32b-v1:0 32768 16384 0.15,0.6,0,0 7
qwen.qwen3-coder-30b-a3b-v1:0 262144 131072 0.15,0.6,0,0 h
qwen.qwen3-coder-480b-a35b-v1:0 131072 65536 0.45,1.8,0,0 h
qwen.qwen3-coder-next 262144 65536 0.5,1.2,0,0 h
qwen.qwen3-next-80b-a3b 262144 262000 0.15,1.2,0,0 h
qwen.qwen3-vl-235b-a22b 262144 262000 0.53,2.66,0,0 i
us-gov.openai.gpt-oss-120b-1:0 128000 16384 0.18,0.72,0,0 7
us-gov.openai.gpt-oss-20b-1:0 128000 16384 0.084,0.36,0,0 7
us.amazon.nova-2-lite-v1:0 1000000 65535 0.33,2.75,0.0825,0.33 0
us.amazon.nova-lite-v1:0 300000 10000 0.06,0.24,0.015,0.06 1
us.amazon.nova-micro-v1:0 128000 10000 0.035,0.14,0.00875,0.035 2
us.amazon.nova-premier-v1:0 1000000 10000 2.5,12.5,0.625,2.5 1
us.amazon.nova-pro-v1:0 300000 10000 0.8,3.2,0.2,0.8 1
us.anthropic.claude-fable-5 1000000 128000 11,55,1.1,13.75 3
us.anthropic.claude-fable-5-1 1000000 128000 11,55,0.275,13.75 3
us.anthropic.claude-haiku-4-5-20251001-v1:0 200000 64000 1.1,5.5,0.11,1.375 4
us.anthropic.claude-opus-4-1-20250805-v1:0 200000 32000 15,75,1.5,18.75 0
us.anthropic.claude-opus-4-5-20251101-v1:0 200000 64000 5.5,27.5,0.55,6.875 4
us.anthropic.claude-opus-4-6-v1 1000000 128000 5.5,27.5,0.55,6.875 5
us.anthropic.claude-opus-4-7 1000000 128000 5.5,27.5,0.55,6.875 6
us.anthropic.claude-opus-4-8 1000000 128000 5.5,27.5,0.55,6.875 6
us.anthropic.claude-opus-5 1000000 128000 5.5,27.5,0.55,6.875 6
us.anthropic.claude-opus-5-5 1000000 128000 4.4,22,0.22,5.5 6
us.anthropic.claude-sonnet-4-20250514-v1:0 200000 64000 3,15,0.3,3.75 0
us.anthropic.claude-sonnet-4-5-20250929-v1:0 200000 64000 3.3,16.5,0.33,4.125 4
us.anthropic.claude-sonnet-4-6 1000000 128000 3.3,16.5,0.33,4.125 5
us.anthropic.claude-sonnet-5 1000000 128000 2.2,11,0.22,2.75 6
us.meta.llama3-1-70b-instruct-v1:0 128000 4096 0.72,0.72,0,0 2
us.meta.llama3-1-8b-instruct-v1:0 128000 4096 0.22,0.22,0,0 2
us.meta.llama3-3-70b-instruct-v1:0 128000 4096 0.72,0.72,0,0 2
us.meta.llama4-maverick-17b-instruct-v1:0 1000000 8192 0.24,0.97,0,0 1
us.meta.llama4-scout-17b-instruct-v1:0 10000000 8192 0.17,0.66,0,0 1
us.mistral.pixtral-large-2502-v1:0 128000 8192 2,6,0,0 1
us.openai.gpt-5.6-luna 1050000 128000 0.22,1.32,0.022,0.275 f
us.openai.gpt-5.6-sol 1050000 128000 4.4,22,0.44,5.5 g
us.openai.gpt-5.6-terra 1050000 128000 2.2,13.2,0.22,2.75 g
us.openai.gpt-6-astra 1050000 128000 11,55,1.1,13.75 f
us.writer.palmyra-x4-v1:0 122880 8192 2.5,10,0,0 j
us.writer.palmyra-x5-v1:0 1040000 8192 0.6,6,0,0 j
us.xai.grok-4.6 500000 500000 2.2,6.6,0.55,0 0
writer.palmyra-x4-v1:0 122880 8192 2.5,10,0,0 j
writer.palmyra-x5-v1:0 1040000 8192 0.6,6,0,0 j
xai.grok-4.3 1000000 131072 1.25,2.5,0.2,0 4
xai.grok-4.6 500000 500000 2.2,6.6,0.55,0 4
zai.glm-4.7 204800 131072 0.6,2.2,0,0 7
zai.glm-4.7-flash 200000 131072 0.07,0.4,0,0 7
zai.glm-5 202752 131072 1,3.2,0,0 7
`,
  ],
  "ant-ling": [
    "Ant Ling",
    ["openai-completions https://api.ant-ling.com/v1"],
    `
Ling-2.6-1T 262144 65536 0.06,0.25,0,0 k
Ling-2.6-flash 262144 65536 0.01,0.02,0,0 k
Ring-2.6-1T 262144 65536 0.06,0.25,0,0 l
`,
  ],
  "anthropic": [
    "Anthropic",
    ["anthropic-messages https://api.anthropic.com"],
    `
claude-fable-5 1000000 128000 10,50,1,12.5 m
claude-fable-5-1 1000000 128000 10,50,0.25,12.5 n
claude-haiku-4-5 200000 64000 1,5,0.1,1.25 o
claude-haiku-4-5-20251001 200000 64000 1,5,0.1,1.25 o
claude-opus-4-5 200000 64000 5,25,0.5,6.25 o
claude-opus-4-5-20251101 200000 64000 5,25,0.5,6.25 o
claude-opus-4-6 1000000 128000 5,25,0.5,6.25 p
claude-opus-4-7 1000000 128000 5,25,0.5,6.25 q
claude-opus-4-8 1000000 128000 5,25,0.5,6.25 r
claude-opus-5 1000000 128000 5,25,0.5,6.25 s
claude-opus-5-5 1000000 128000 4,20,0.2,5 t
claude-sonnet-4-5 200000 64000 3,15,0.3,3.75 o
claude-sonnet-4-5-20250929 200000 64000 3,15,0.3,3.75 o
claude-sonnet-4-6 1000000 128000 3,15,0.3,3.75 p
claude-sonnet-5 1000000 128000 2,10,0.2,2.5 u
`,
  ],
  "azure-openai-responses": [
    "Azure OpenAI",
    ["azure-openai-responses "],
    `
gpt-4 8192 8192 30,60,0,0 2
gpt-4-turbo 128000 4096 10,30,0,0 1
gpt-4.1 1047576 32768 2,8,0.5,0 1
gpt-4.1-mini 1047576 32768 0.4,1.6,0.1,0 1
gpt-4.1-nano 1047576 32768 0.1,0.4,0.025,0 1
gpt-4o 128000 16384 2.5,10,1.25,0 1
gpt-4o-2024-05-13 128000 4096 5,15,0,0 1
gpt-4o-2024-08-06 128000 16384 2.5,10,1.25,0 1
gpt-4o-2024-11-20 128000 16384 2.5,10,1.25,0 1
gpt-4o-mini 128000 16384 0.15,0.6,0.075,0 1
gpt-5 400000 128000 1.25,10,0.125,0 v
gpt-5-chat-latest 128000 16384 1.25,10,0.125,0 w
gpt-5-mini 400000 128000 0.25,2,0.025,0 v
gpt-5-nano 400000 128000 0.05,0.4,0.005,0 v
gpt-5-pro 400000 128000 15,120,0,0 v
gpt-5.1 400000 128000 1.25,10,0.125,0 v
gpt-5.2 400000 128000 1.75,14,0.175,0 x
gpt-5.2-chat-latest 128000 16384 1.75,14,0.175,0 x
gpt-5.2-pro 400000 128000 21,168,0,0 x
gpt-5.3-chat-latest 128000 16384 1.75,14,0.175,0 y
gpt-5.3-codex 400000 128000 1.75,14,0.175,0 x
gpt-5.3-codex-spark 128000 32000 1.75,14,0.175,0 x
gpt-5.4 1050000 128000 2.5,15,0.25,0 x
gpt-5.4-mini 400000 128000 0.75,4.5,0.075,0 x
gpt-5.4-nano 400000 128000 0.2,1.25,0.02,0 x
gpt-5.4-pro 1050000 128000 30,180,0,0 x
gpt-5.5 1050000 128000 5,30,0.5,0 x
gpt-5.5-pro 1050000 128000 30,180,0,0 z
gpt-5.6-luna 1050000 128000 0.2,1.2,0.02,0.25 10
gpt-5.6-sol 1050000 128000 4,20,0.4,5 10
gpt-5.6-terra 1050000 128000 2,12,0.2,2.5 10
gpt-6-astra 272000 128000 10,50,1,12.5 11
gpt-6-luna 272000 128000 0.1,0.5,0.01,0.125 12
gpt-6-sol 272000 128000 2,10,0.2,2.5 12
gpt-realtime-2.1 128000 32000 4,24,0.4,0 0
o1 200000 100000 15,60,7.5,0 0
o1-pro 200000 100000 150,600,0,0 0
o3 200000 100000 2,8,0.5,0 0
o3-mini 200000 100000 1.1,4.4,0.55,0 j
o3-pro 200000 100000 20,80,0,0 0
o4-mini 200000 100000 1.1,4.4,0.275,0 0
`,
  ],
  "baseten": [
    "Baseten",
    ["openai-completions https://inference.baseten.co/v1"],
    `
deepseek-ai/DeepSeek-V4-Flash-0731 1048576 384000 0.13,0.26,0.028,0 13
deepseek-ai/DeepSeek-V4-Pro 1048576 262144 1.74,3.48,0.145,0 13
deepseek-ai/DeepSeek-V4-Pro-0813 1048576 262144 1.32,3.96,0,0 14
deepseek-ai/DeepSeek-V4.1-Flash 1048576 32768 0.3,1.2,0.03,0 15
moonshotai/Kimi-K2.5 262000 262000 0.6,3,0.12,0 16
moonshotai/Kimi-K2.6 262000 262000 0.95,4,0.16,0 16
moonshotai/Kimi-K2.7-Code 262000 262000 0.95,4,0.16,0 16
moonshotai/Kimi-K3 1048576 262144 3,15,0,0 15
nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B 202800 202800 0.6,2.4,0.12,0 17
nvidia/Nemotron-120B-A12B 202800 202800 0.3,0.75,0.06,0 17
openai/gpt-oss-120b 128072 128072 0.1,0.5,0,0 13
thinkingmachines/inkling 1048576 32768 1,4.05,0,0 18
thinkingmachines/inkling-small 1048576 32768 0.5,1.2,0.1,0 18
zai-org/GLM-4.7 200000 200000 0.6,2.2,0.12,0 17
zai-org/GLM-5 202800 202800 0.95,3.15,0.2,0 17
zai-org/GLM-5.1 202800 202800 1.3,4.3,0.26,0 17
zai-org/GLM-5.2 1048576 262144 1.4,4.4,0.3,0 19
zai-org/GLM-5.2-Fast 1048576 262144 2.1,6.6,0.21,0 19
zai-org/GLM-5.3 1048576 262144 1.4,4.4,0.14,0 1a
zai-org/GLM-5.3-Fast 1048576 262144 2.1,6.6,0,0 15
zai-org/GLM-5.3-Flash 1048576 131072 0.15,0.5,0,0 1a
`,
  ],
  "cerebras": [
    "Cerebras",
    ["openai-completions https://api.cerebras.ai/v1"],
    `
gpt-oss-120b 131072 40960 0.35,0.75,0,0 1b
qwen-3.8-27b 65536 32768 0.99,1.49,0,0 1c
`,
  ],
  "cloudflare-ai-gateway": [
    "Cloudflare AI Gateway",
    ["openai-responses https://gateway.ai.cloudflare.com/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/openai","openai-completions https://gateway.ai.cloudflare.com/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/compat","anthropic-messages https://gateway.ai.cloudflare.com/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/anthropic"],
    `
claude-fable-5 1000000 128000 10,50,1,12.5 1d
claude-fable-5.1 1000000 128000 10,50,0.25,12.5 1d
claude-haiku-4.5 200000 64000 1,5,0.1,1.25 1e
claude-opus-4.5 200000 64000 5,25,0.5,6.25 1e
claude-opus-4.6 1000000 128000 5,25,0.5,6.25 1f
claude-opus-4.7 1000000 128000 5,25,0.5,6.25 1g
claude-opus-4.8 1000000 128000 5,25,0.5,6.25 1g
claude-opus-5 1000000 128000 5,25,0.5,6.25 1g
claude-sonnet-4.5 1000000 64000 3,15,0.3,3.75 1e
claude-sonnet-4.6 1000000 128000 3,15,0.3,3.75 1f
claude-sonnet-5 1000000 128000 2,10,0.2,2.5 1h
workers-ai/@cf/deepseek-ai/deepseek-v4-flash-0731 1310720 1048576 0.44,1.32,0.014,0 1i
workers-ai/@cf/deepseek-ai/deepseek-v4-pro-0813 1048576 1048576 1.32,3.96,0.044,0 1i
workers-ai/@cf/google/gemma-4-26b-a4b-it 256000 16384 0.1,0.3,0,0 1j
workers-ai/@cf/ibm-granite/granite-4.0-h-micro 131000 131000 0.017,0.112,0,0 1k
workers-ai/@cf/meta/llama-3.3-70b-instruct-fp8-fast 24000 24000 0.293,2.253,0,0 1k
workers-ai/@cf/meta/llama-4-scout-17b-16e-instruct 131000 16384 0.27,0.85,0,0 1l
workers-ai/@cf/mistralai/mistral-small-3.1-24b-instruct 128000 128000 0.351,0.555,0,0 1k
workers-ai/@cf/moonshotai/kimi-k2.6 262144 256000 0.95,4,0.16,0 1j
workers-ai/@cf/moonshotai/kimi-k2.7-code 262144 262144 0.95,4,0.19,0 1j
workers-ai/@cf/nvidia/nemotron-3-120b-a12b 256000 256000 0.5,1.5,0,0 1m
workers-ai/@cf/openai/gpt-oss-120b 128000 16384 0.35,0.75,0,0 1m
workers-ai/@cf/openai/gpt-oss-20b 128000 16384 0.2,0.3,0,0 1m
workers-ai/@cf/qwen/qwen3-30b-a3b-fp8 32768 32768 0.0509,0.335,0,0 1m
workers-ai/@cf/qwen/qwen3.8-27b 262144 262144 0.45,3.2,0.05,0 1j
workers-ai/@cf/zai-org/glm-4.7-flash 131072 131072 0.0605,0.4,0,0 1m
workers-ai/@cf/zai-org/glm-5.2 262144 256000 1.4,4.4,0.26,0 1m
workers-ai/@cf/zai-org/glm-5.3 1310720 1048576 1.4,4.4,0.26,0 1m
workers-ai/@cf/zai-org/glm-5.3-flash 1310720 1048576 0.15,0.5,0.03,0 1j
gpt-4.1 1047576 32768 2,8,0.5,0 i
gpt-4.1-mini 1047576 32768 0.4,1.6,0.1,0 i
gpt-4.1-nano 1000000 32768 0.1,0.4,0.025,0 i
gpt-4o 128000 16384 1.25,5,0.625,0 i
gpt-4o-mini 128000 16384 0.075,0.3,0.0375,0 i
gpt-5 128000 128000 1.25,10,0.125,0 1n
gpt-5-mini 128000 128000 0.25,2,0.025,0 1n
gpt-5-nano 128000 128000 0.05,0.4,0.005,0 1n
gpt-5.1 128000 128000 1.25,10,0.125,0 1o
gpt-5.4 1000000 128000 2.5,15,0.25,0 1p
gpt-5.4-mini 128000 128000 0.75,4.5,0.075,0 1p
gpt-5.4-nano 128000 128000 0.2,1.25,0.02,0 1p
gpt-5.4-pro 1000000 128000 30,180,0,0 1q
gpt-5.5 1000000 128000 5,30,0,0 1p
gpt-5.5-pro 1000000 128000 30,180,0,0 1q
gpt-5.6-luna 1050000 128000 0.2,1.2,0.02,0.25;272000,0.4,1.8,0.04,0.5 1r
gpt-5.6-sol 1050000 128000 4,20,0.4,5;272000,8,30,0.8,10 1r
gpt-5.6-terra 1050000 128000 2,12,0.2,2.5;272000,4,18,0.4,5 1r
gpt-6-astra 1050000 128000 10,50,1,12.5;272000,20,75,2,25 1r
o3 200000 100000 2,8,0.5,0 1s
o3-mini 200000 100000 1.1,4.4,0.55,0 1t
o4-mini 200000 100000 1.1,4.4,0.275,0 1s
`,
  ],
  "cloudflare-workers-ai": [
    "Cloudflare Workers AI",
    ["openai-completions https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1"],
    `
@cf/deepseek-ai/deepseek-v4-flash-0731 1310720 1048576 0.44,1.32,0.014,0 1u
@cf/deepseek-ai/deepseek-v4-pro-0813 1048576 1048576 1.32,3.96,0.044,0 1u
@cf/google/gemma-4-26b-a4b-it 256000 16384 0.1,0.3,0,0 1v
@cf/ibm-granite/granite-4.0-h-micro 131000 131000 0.017,0.112,0,0 1w
@cf/meta/llama-3.3-70b-instruct-fp8-fast 24000 24000 0.293,2.253,0,0 1w
@cf/meta/llama-4-scout-17b-16e-instruct 131000 16384 0.27,0.85,0,0 1x
@cf/mistralai/mistral-small-3.1-24b-instruct 128000 128000 0.351,0.555,0,0 1w
@cf/moonshotai/kimi-k2.6 262144 256000 0.95,4,0.16,0 1v
@cf/moonshotai/kimi-k2.7-code 262144 262144 0.95,4,0.19,0 1y
@cf/nvidia/nemotron-3-120b-a12b 256000 256000 0.5,1.5,0,0 1z
@cf/openai/gpt-oss-120b 128000 16384 0.35,0.75,0,0 1z
@cf/openai/gpt-oss-20b 128000 16384 0.2,0.3,0,0 20
@cf/qwen/qwen3-30b-a3b-fp8 32768 32768 0.0509,0.335,0,0 20
@cf/qwen/qwen3.8-27b 262144 262144 0.45,3.2,0.05,0 21
@cf/zai-org/glm-4.7-flash 131072 131072 0.0605,0.4,0,0 20
@cf/zai-org/glm-5.2 262144 256000 1.4,4.4,0.26,0 22
@cf/zai-org/glm-5.3 1310720 1048576 1.4,4.4,0.26,0 23
@cf/zai-org/glm-5.3-flash 1310720 1048576 0.15,0.5,0.03,0 24
`,
  ],
  "deepseek": [
    "DeepSeek",
    ["openai-completions https://api.deepseek.com"],
    `
deepseek-flash 1000000 384000 0.3,1.2,0.006,0 25
deepseek-v4-pro 1000000 384000 1.32,3.96,0.044,0 26
`,
  ],
  "fireworks": [
    "Fireworks",
    ["anthropic-messages https://api.fireworks.ai/inference","openai-completions https://api.fireworks.ai/inference/v1"],
    `
accounts/fireworks/models/deepseek-v4-flash-0731 1000000 384000 0.22,0.66,0.007,0 27
accounts/fireworks/models/deepseek-v4-flash-vision-exp 1000000 384000 0.22,0.66,0.007,0 28
accounts/fireworks/models/deepseek-v4-pro 1000000 384000 1.2,1.2,0.6,0 29
accounts/fireworks/models/deepseek-v4-pro-0813 1000000 384000 1.32,3.96,0.044,0 27
accounts/fireworks/models/deepseek-v4p1-flash 1000000 384000 0.22,0.66,0.007,0 28
accounts/fireworks/models/gpt-oss-120b 131072 32768 0.15,0.6,0.015,0 2a
accounts/fireworks/models/inkling 1048576 1048576 1,4.05,0.17,0 2b
accounts/fireworks/models/kimi-k2p6 262000 262000 0.95,4,0.16,0 2b
accounts/fireworks/models/kimi-k2p7-code 262000 262000 0.95,4,0.19,0 2b
accounts/fireworks/models/minimax-m2p7 196608 131072 1.2,1.2,0.6,0 2a
accounts/fireworks/models/minimax-m3 512000 512000 0.3,1.2,0.06,0 2a
accounts/fireworks/models/muse-glimmer-30b 131072 131072 0.35,1.5,0.04,0 2c
accounts/fireworks/models/nemotron-3-ultra-nvfp4 262144 128000 0.6,2.4,0.12,0 2d
accounts/fireworks/models/nemotron-lightning-3p5-30b-a3b 262144 262144 0.05,0.2,0.01,0 2d
accounts/fireworks/models/qwen3p7-plus 262144 65536 0.4,1.6,0.08,0 2e
accounts/fireworks/models/qwen3p8-2p4t-a95b 262144 131072 2,6,0.25,0 2f
accounts/fireworks/models/qwen3p8-max 262144 131072 2,6,0.25,0 2g
accounts/fireworks/routers/deepseek-flash-latest 1000000 384000 0.22,0.66,0.007,0 28
accounts/fireworks/routers/deepseek-pro-latest 1000000 384000 1.32,3.96,0.044,0 29
accounts/fireworks/routers/kimi-fast-latest 1048576 131072 4.5,22.5,0.45,0 2h
accounts/fireworks/routers/kimi-latest 1048576 131072 3,15,0.3,0 2h
accounts/fireworks/routers/minimax-latest 512000 512000 0.3,1.2,0.06,0 2a
accounts/fireworks/routers/qwen-max-latest 262144 131072 2,6,0.25,0 2b
accounts/fireworks/models/glm-5p2 1048575 131072 1.4,4.4,0.14,0 2i
accounts/fireworks/models/glm-5p3 1048573 262144 1.4,4.4,0.26,0 2j
accounts/fireworks/models/glm-5p3-flash 1048573 131072 0.15,0.5,0.03,0 2k
accounts/fireworks/models/kimi-k3 1048576 131072 3,15,0.3,0 2l
accounts/fireworks/routers/glm-5p2-fast 1048575 131072 2.1,6.6,0.21,0 2i
accounts/fireworks/routers/glm-5p3-fast 1048572 262144 2.1,6.6,0.39,0 2j
accounts/fireworks/routers/glm-fast-latest 1048572 262144 2.1,6.6,0.39,0 2j
accounts/fireworks/routers/glm-flash-latest 1048573 131072 0.15,0.5,0.03,0 2k
accounts/fireworks/routers/glm-latest 1048573 262144 1.4,4.4,0.26,0 2j
accounts/fireworks/routers/kimi-k3-fast 1048576 131072 4.5,22.5,0.45,0 2l
`,
  ],
  "google": [
    "Google",
    ["google-generative-ai https://generativelanguage.googleapis.com/v1beta"],
    `
deep-research-max-preview-04-2026 131072 65536 2,12,0.2,0 0
deep-research-preview-04-2026 131072 65536 2,12,0.2,0 0
gemini-2.5-computer-use-preview-10-2025 131072 65536 1.25,10,0,0 0
gemini-2.5-flash 1048576 65536 0.3,2.5,0.03,0 0
gemini-2.5-flash-lite 1048576 65536 0.1,0.4,0.01,0 0
gemini-2.5-pro 1048576 65536 1.25,10,0.125,0 0
gemini-3-flash-preview 1048576 65536 0.5,3,0.05,0 2m
gemini-3.1-flash-lite 1048576 65536 0.25,1.5,0.025,0 2m
gemini-3.1-flash-lite-image 65536 65536 0.25,30,0,0 2n
gemini-3.1-flash-lite-preview 1048576 65536 0.25,1.5,0.025,0 2m
gemini-3.1-flash-live-preview 131072 65536 0.75,4.5,0,0 2m
gemini-3.1-pro-preview 1048576 65536 2,12,0.2,0 2o
gemini-3.1-pro-preview-customtools 1048576 65536 2,12,0.2,0 2o
gemini-3.5-flash 1048576 65536 1.5,9,0.15,0 2m
gemini-3.5-flash-lite 1048576 65536 0.3,2.5,0.03,0 2m
gemini-3.6-flash 1048576 65536 0.75,3.75,0.075,0 2m
gemini-3.7-flash 1048576 65536 0.75,3.75,0.075,0 2o
gemini-3.8-flash 1048576 65536 0.75,3.75,0.075,0 2o
gemini-flash-latest 1048576 65536 1.5,9,0.15,0 2m
gemini-flash-lite-latest 1048576 65536 0.25,1.5,0.025,0 2m
gemma-4-26b-a4b-it 262144 32768 - 2p
gemma-4-31b-it 262144 32768 - 2p
`,
  ],
  "google-vertex": [
    "Google Vertex AI",
    ["google-vertex https://{location}-aiplatform.googleapis.com"],
    `
gemini-2.5-flash 1048576 65536 0.3,2.5,0.03,0 0
gemini-2.5-flash-lite 1048576 65536 0.1,0.4,0.01,0 0
gemini-2.5-pro 1048576 65536 1.25,10,0.125,0 0
gemini-3-flash-preview 1048576 65536 0.5,3,0.05,0 2m
gemini-3.1-flash-lite 1048576 65536 0.25,1.5,0.025,0 2m
gemini-3.1-pro-preview 1048576 65536 2,12,0.2,0 2o
gemini-3.1-pro-preview-customtools 1048576 65536 2,12,0.2,0 2o
gemini-3.5-flash 1048576 65536 1.5,9,0.15,0 2m
gemini-3.5-flash-lite 1048576 65536 0.3,2.5,0.03,0 2m
gemini-3.6-flash 1048576 65536 0.75,3.75,0.075,0 2m
gemini-3.7-flash 1048576 65536 0.75,3.75,0.075,0 2o
gemini-3.8-flash 1048576 65536 0.75,3.75,0.075,0 2o
gemini-flash-latest 1048576 65536 1.5,9,0.15,0 2m
gemini-flash-lite-latest 1048576 65536 0.25,1.5,0.025,0 2m
`,
  ],
  "groq": [
    "Groq",
    ["openai-completions https://api.groq.com/openai/v1"],
    `
llama-3.1-8b-instant 131072 131072 0.05,0.08,0,0 h
llama-3.3-70b-versatile 131072 32768 0.59,0.79,0,0 h
openai/gpt-oss-120b 131072 65536 0.15,0.6,0.075,0 1t
openai/gpt-oss-20b 131072 65536 0.075,0.3,0.0375,0 1t
openai/gpt-oss-safeguard-20b 131072 65536 0.075,0.3,0,0 1t
qwen/qwen3.6-27b 131072 16384 0.6,3,0.3,0 2q
qwen/qwen3.8-27b 131042 16384 0.8,4,0,0 2r
`,
  ],
  "huggingface": [
    "Hugging Face",
    ["openai-completions https://router.huggingface.co/v1"],
    `
MiniMaxAI/MiniMax-M2 204800 131072 0.3,1.2,0,0 2s
MiniMaxAI/MiniMax-M2.1 204800 131072 0.3,1.2,0,0 2s
MiniMaxAI/MiniMax-M2.5 204800 131072 0.3,1.2,0.03,0 2s
MiniMaxAI/MiniMax-M2.7 204800 131072 0.3,1.2,0.06,0 2s
MiniMaxAI/MiniMax-M3 524288 512000 0.3,1.2,0,0 2t
Qwen/Qwen2.5-Coder-32B-Instruct 131072 8192 0.06,0.2,0,0 2u
Qwen/Qwen3-235B-A22B 40960 16384 0.2,0.8,0,0 2s
Qwen/Qwen3-235B-A22B-Instruct-2507 262144 16384 0.855,2.565,0,0 2u
Qwen/Qwen3-235B-A22B-Thinking-2507 262144 131072 0.3,3,0,0 2s
Qwen/Qwen3-30B-A3B 40960 16384 0.12,0.5,0,0 2s
Qwen/Qwen3-32B 131072 16384 0.29,0.59,0,0 2s
Qwen/Qwen3-Coder-30B-A3B-Instruct 262144 65536 0.07,0.26,0,0 2u
Qwen/Qwen3-Coder-480B-A35B-Instruct 262144 66536 2,2,0,0 2u
Qwen/Qwen3-Coder-Next 262144 65536 0.2,1.5,0,0 2u
Qwen/Qwen3-Next-80B-A3B-Instruct 262144 66536 0.25,1,0,0 2u
Qwen/Qwen3-Next-80B-A3B-Thinking 262144 131072 0.3,2,0,0 2u
Qwen/Qwen3-VL-235B-A22B-Instruct 131072 32768 0.3,1.5,0,0 2v
Qwen/Qwen3-VL-235B-A22B-Thinking 131072 32768 0.98,3.95,0,0 2w
Qwen/Qwen3.5-122B-A10B 262144 65536 0.4,3.2,0,0 2t
Qwen/Qwen3.5-27B 262144 65536 0.3,2.4,0,0 2t
Qwen/Qwen3.5-35B-A3B 262144 65536 0.25,2,0,0 2t
Qwen/Qwen3.5-397B-A17B 262144 32768 0.6,3.6,0,0 2x
Qwen/Qwen3.5-9B 262144 65536 0.17,0.25,0,0 2t
Qwen/Qwen3.6-27B 262144 65536 0.47,3.19,0,0 2t
Qwen/Qwen3.6-35B-A3B 262144 65536 0.15,0.95,0,0 2t
Qwen/Qwen3.8-2.4T-A95B 262144 131072 2.5,6.25,0,0 2y
Qwen/Qwen3.8-27B 262144 32768 0.4,3,0,0 2z
XiaomiMiMo/MiMo-V2-Flash 262144 4096 0.1,0.3,0,0 2s
XiaomiMiMo/MiMo-V2.5 262144 131072 0.4,2,0,0 30
XiaomiMiMo/MiMo-V2.5-Pro 1048576 131072 1,3,0,0 30
deepseek-ai/DeepSeek-R1 64000 32768 0.7,2.5,0,0 2s
deepseek-ai/DeepSeek-R1-0528 163840 163840 3,5,0,0 2s
deepseek-ai/DeepSeek-V3 64000 8192 0.4,1.3,0,0 2u
deepseek-ai/DeepSeek-V3-0324 163840 163840 0.27,1.12,0,0 2u
deepseek-ai/DeepSeek-V3.1 131072 8192 0.27,1,0,0 2s
deepseek-ai/DeepSeek-V3.2 163840 65536 0.28,0.4,0,0 2s
deepseek-ai/DeepSeek-V4-Flash 1048576 384000 0.14,0.28,0,0 2s
deepseek-ai/DeepSeek-V4-Flash-0731 1048576 384000 0.14,0.28,0,0 31
deepseek-ai/DeepSeek-V4-Flash-Vision-Exp 1048576 384000 0.44,1.32,0,0 32
deepseek-ai/DeepSeek-V4-Pro 1048576 393216 0.435,0.87,0.003625,0 33
deepseek-ai/DeepSeek-V4-Pro-0813 1000000 384000 1.32,3.96,0,0 34
deepseek-ai/DeepSeek-V4.1-Flash 1048576 384000 0.3,1.2,0,0 35
google/gemma-3-12b-it 131072 131072 0.05,0.15,0,0 2v
google/gemma-3-27b-it 131072 131072 0.08,0.16,0,0 2v
google/gemma-3-4b-it 131072 131072 0.05,0.1,0,0 2v
google/gemma-4-26B-A4B-it 262144 32768 0.13,0.4,0,0 2t
google/gemma-4-31B-it 262144 32768 0.14,0.4,0,0 2t
meta-llama/Llama-3.1-8B-Instruct 131072 4096 0.06,0.06,0,0 2u
meta-llama/Llama-3.3-70B-Instruct 131072 4096 0.59,0.79,0,0 2u
moonshotai/Kimi-K2-Instruct 131072 16384 1,3,0,0 2u
moonshotai/Kimi-K2-Instruct-0905 262144 16384 1,3,0,0 2u
moonshotai/Kimi-K2-Thinking 262144 262144 0.6,2.5,0.15,0 2s
moonshotai/Kimi-K2.5 262144 262144 0.6,3,0.1,0 2t
moonshotai/Kimi-K2.6 262144 262144 0.95,4,0.16,0 2t
moonshotai/Kimi-K2.7-Code 262144 262144 0.95,4,0,0 2t
moonshotai/Kimi-K3 1000000 131072 3,15,0,0 32
openai/gpt-oss-120b 131072 32768 0.25,0.69,0,0 36
openai/gpt-oss-20b 131072 32768 0.1,0.5,0,0 36
stepfun-ai/Step-3.5-Flash 262144 256000 0.1,0.3,0,0 2s
stepfun-ai/Step-3.7-Flash 262144 256000 0.2,1.15,0,0 2w
tencent/Hy3 262144 128000 0.14,0.58,0,0 37
tencent/Hy4-preview 1000000 64000 0.834,2.501,0,0 38
thinkingmachines/Inkling 1048576 1048576 1,4.05,0,0 2w
thinkingmachines/Inkling-Small 524288 1048576 0.5,1.2,0,0 2t
zai-org/GLM-4.5 131072 98304 0.6,2.2,0,0 2s
zai-org/GLM-4.5-Air 131072 98304 0.13,0.85,0,0 2s
zai-org/GLM-4.5V 65536 16384 0.6,1.8,0,0 2t
zai-org/GLM-4.6 204800 131072 0.55,2.2,0,0 2s
zai-org/GLM-4.6V-Flash 131072 32768 0.3,0.9,0,0 2t
zai-org/GLM-4.7 204800 131072 0.6,2.2,0.11,0 2s
zai-org/GLM-4.7-Flash 200000 128000 - 2s
zai-org/GLM-5 202752 131072 1,3.2,0.2,0 2s
zai-org/GLM-5.1 202752 131072 1,3.2,0.2,0 2s
zai-org/GLM-5.2 262144 131072 1.4,4.4,0,0 2s
zai-org/GLM-5.3 1048576 131072 1.4,4.4,0,0 34
zai-org/GLM-5.3-Flash 1048576 131072 0.15,0.5,0,0 32
`,
  ],
  "kimi-coding": [
    "Kimi For Coding",
    ["anthropic-messages https://api.kimi.com/coding"],
    `
k3 1048576 131072 3,15,0.3,0 39
k3-256k 262144 131072 - 3a
kimi-for-coding 1048576 32768 0.95,4,0.19,0 39
kimi-for-coding-highspeed 262144 32768 1.9,8,0.38,0 3b
`,
  ],
  "meta": [
    "Meta",
    ["openai-responses https://api.meta.ai/v1"],
    `
muse-spark-1.1 1048576 131072 1.25,4.25,0.15,0 3c
muse-spark-1.2 1048576 131072 1.25,4.25,0.15,0 3c
muse-spark-1.2-contributor 1048576 131072 0.1,0.2,0.002,0 3c
muse-spark-1.3 1048576 131072 1.25,4.25,0.15,0 3d
muse-spark-1.3-contributor 1048576 131072 0.1,0.2,0.002,0 3c
`,
  ],
  "minimax": [
    "MiniMax",
    ["anthropic-messages https://api.minimax.io/anthropic"],
    `
MiniMax-M2.7 204800 131072 0.3,1.2,0.06,0.375 j
MiniMax-M2.7-highspeed 204800 131072 0.6,2.4,0.06,0.375 j
MiniMax-M3 1048576 512000 0.3,1.2,0.06,0 0
`,
  ],
  "minimax-cn": [
    "MiniMax CN",
    ["anthropic-messages https://api.minimaxi.com/anthropic"],
    `
MiniMax-M2.7 204800 131072 0.3,1.2,0.06,0.375 j
MiniMax-M2.7-highspeed 204800 131072 0.6,2.4,0.06,0.375 j
MiniMax-M3 1048576 512000 0.3,1.2,0.06,0 0
`,
  ],
  "mistral": [
    "Mistral",
    ["mistral-conversations https://api.mistral.ai"],
    `
codestral-latest 256000 4096 0.3,0.9,0.03,0 2
devstral-2512 262144 262144 0.4,2,0.04,0 2
devstral-latest 262144 262144 0.4,2,0.04,0 2
devstral-medium-2507 128000 128000 0.4,2,0.04,0 2
devstral-medium-latest 262144 262144 0.4,2,0.04,0 2
devstral-small-2505 128000 128000 0.1,0.3,0.01,0 2
devstral-small-2507 128000 128000 0.1,0.3,0.01,0 2
labs-devstral-small-2512 256000 256000 - 1
magistral-medium-latest 128000 16384 2,5,0.2,0 j
magistral-small 128000 128000 0.5,1.5,0.05,0 j
ministral-3b-latest 128000 128000 0.04,0.04,0.004,0 2
ministral-8b-latest 128000 128000 0.1,0.1,0.01,0 2
mistral-large-2411 131072 16384 2,6,0.2,0 2
mistral-large-2512 262144 262144 0.5,1.5,0.05,0 1
mistral-large-latest 262144 262144 0.5,1.5,0.05,0 1
mistral-medium-2505 131072 131072 0.4,2,0.04,0 1
mistral-medium-2508 262144 262144 0.4,2,0.04,0 1
mistral-medium-2604 262144 262144 1.5,7.5,0.15,0 0
mistral-medium-3.5 262144 262144 1.5,7.5,0,0 0
mistral-medium-latest 262144 262144 1.5,7.5,0.15,0 0
mistral-nemo 128000 128000 0.15,0.15,0.015,0 2
mistral-small-2506 128000 16384 0.1,0.3,0.01,0 1
mistral-small-2603 256000 256000 0.15,0.6,0.015,0 0
mistral-small-latest 256000 256000 0.15,0.6,0.015,0 0
open-mistral-7b 8000 8000 0.25,0.25,0.025,0 2
open-mistral-nemo 128000 128000 0.15,0.15,0.015,0 2
open-mixtral-8x22b 64000 64000 2,6,0.2,0 2
open-mixtral-8x7b 32000 32000 0.7,0.7,0.07,0 2
pixtral-12b 128000 128000 0.15,0.15,0.015,0 1
pixtral-large-latest 128000 128000 2,6,0.2,0 1
voxtral-small-latest 32000 32000 0.1,0.3,0.01,0 2
zai-glm-5-2 1000000 131072 1.4,4.4,0.14,0 j
zai-glm-5-3 1000000 131072 1.4,4.4,0.14,0 j
`,
  ],
  "moonshotai": [
    "Moonshot AI",
    ["openai-completions https://api.moonshot.ai/v1"],
    `
kimi-k2.6 262144 262144 0.95,4,0.16,0 3e
kimi-k2.7-code 262144 262144 0.95,4,0.19,0 3f
kimi-k2.7-code-highspeed 262144 262144 1.9,8,0.38,0 3f
kimi-k3 1048576 131072 3,15,0.3,0 3g
`,
  ],
  "moonshotai-cn": [
    "Moonshot AI CN",
    ["openai-completions https://api.moonshot.cn/v1"],
    `
kimi-k2.6 262144 262144 0.95,4,0.16,0 3e
kimi-k2.7-code 262144 262144 0.95,4,0.19,0 3f
kimi-k2.7-code-highspeed 262144 262144 1.9,8,0.38,0 3f
kimi-k3 1048576 131072 3,15,0.3,0 3g
`,
  ],
  "nvidia": [
    "NVIDIA",
    ["openai-completions https://integrate.api.nvidia.com/v1"],
    `
google/gemma-3-12b-it 131072 16384 - 3h
google/gemma-3-4b-it 131072 16384 - 3h
meta/llama-3.2-11b-vision-instruct 128000 4096 - 3h
meta/llama-3.2-90b-vision-instruct 128000 8192 - 3h
meta/muse-glimmer-30b 131072 131072 - 3i
mistralai/mistral-7b-instruct-v0.3 65536 65536 - 3j
moonshotai/kimi-k2.6 262144 262144 - 3i
moonshotai/kimi-k3 1048576 131072 - 3i
nvidia/cosmos-reason2-8b 131072 16384 - 3i
nvidia/llama-3.1-nemotron-70b-instruct 128000 8192 - 3j
nvidia/llama-3.1-nemotron-ultra-253b-v1 128000 16384 - 3k
nvidia/nemotron-3-nano-omni-30b-a3b-reasoning 256000 65536 - 3i
nvidia/nemotron-3-super-120b-a12b 262144 262144 0.2,0.8,0,0 3k
nvidia/nemotron-3-ultra-550b-a55b 1000000 65536 0.5,2.5,0.15,0 3k
nvidia/nemotron-3.5-lightning-30b-a3b 262144 262144 - 3k
openai/gpt-oss-20b 131072 32768 - 3k
poolside/laguna-xs-2.1 262144 16384 - 3k
z-ai/glm-5.3 1000000 131072 - 3k
z-ai/glm-5.3-flash 1000000 131072 - 3i
`,
  ],
  "openai": [
    "OpenAI",
    ["openai-responses https://api.openai.com/v1"],
    `
gpt-4 8192 8192 30,60,0,0 h
gpt-4-turbo 128000 4096 10,30,0,0 i
gpt-4.1 1047576 32768 2,8,0.5,0 i
gpt-4.1-mini 1047576 32768 0.4,1.6,0.1,0 i
gpt-4.1-nano 1047576 32768 0.1,0.4,0.025,0 i
gpt-4o 128000 16384 2.5,10,1.25,0 i
gpt-4o-2024-05-13 128000 4096 5,15,0,0 i
gpt-4o-2024-08-06 128000 16384 2.5,10,1.25,0 i
gpt-4o-2024-11-20 128000 16384 2.5,10,1.25,0 i
gpt-4o-mini 128000 16384 0.15,0.6,0.075,0 i
gpt-5 400000 128000 1.25,10,0.125,0 1n
gpt-5-chat-latest 128000 16384 1.25,10,0.125,0 3l
gpt-5-mini 400000 128000 0.25,2,0.025,0 1n
gpt-5-nano 400000 128000 0.05,0.4,0.005,0 1n
gpt-5-pro 400000 128000 15,120,0,0 3m
gpt-5.1 400000 128000 1.25,10,0.125,0 3n
gpt-5.2 400000 128000 1.75,14,0.175,0 3o
gpt-5.2-chat-latest 128000 16384 1.75,14,0.175,0 3p
gpt-5.2-pro 400000 128000 21,168,0,0 1q
gpt-5.3-chat-latest 128000 16384 1.75,14,0.175,0 3q
gpt-5.3-codex 400000 128000 1.75,14,0.175,0 3o
gpt-5.3-codex-spark 128000 32000 1.75,14,0.175,0 1p
gpt-5.4 272000 128000 2.5,15,0.25,0;272000,5,22.5,0.5,0 3r
gpt-5.4-mini 400000 128000 0.75,4.5,0.075,0 3r
gpt-5.4-nano 400000 128000 0.2,1.25,0.02,0 3o
gpt-5.4-pro 1050000 128000 30,180,0,0;272000,60,270,0,0 3s
gpt-5.5 272000 128000 5,30,0.5,0;272000,10,45,1,0 3r
gpt-5.5-pro 1050000 128000 30,180,0,0;272000,60,270,0,0 1q
gpt-5.6-luna 272000 128000 0.2,1.2,0.02,0.25;272000,0.4,1.8,0.04,0.5 3t
gpt-5.6-sol 272000 128000 4,20,0.4,5;272000,8,30,0.8,10 3t
gpt-5.6-terra 272000 128000 2,12,0.2,2.5;272000,4,18,0.4,5 3t
gpt-6-astra 272000 128000 10,50,1,12.5;272000,20,75,2,25 3u
gpt-6-luna 272000 128000 0.1,0.5,0.01,0.125;272000,0.2,0.75,0.02,0.25 3t
gpt-6-sol 272000 128000 2,10,0.2,2.5;272000,4,15,0.4,5 3t
gpt-realtime-2.1 128000 32000 4,24,0.4,0 3v
o1 200000 100000 15,60,7.5,0 1s
o1-pro 200000 100000 150,600,0,0 1s
o3 200000 100000 2,8,0.5,0 1s
o3-mini 200000 100000 1.1,4.4,0.55,0 1t
o3-pro 200000 100000 20,80,0,0 1s
o4-mini 200000 100000 1.1,4.4,0.275,0 1s
`,
  ],
  "opencode": [
    "OpenCode Zen",
    ["openai-responses https://opencode.ai/zen/v1","openai-completions https://opencode.ai/zen/v1","anthropic-messages https://opencode.ai/zen","google-generative-ai https://opencode.ai/zen/v1"],
    `
claude-fable-5 1000000 128000 10,50,1,12.5 3w
claude-fable-5-1 1000000 128000 10,50,0.25,12.5 3w
claude-haiku-4-5 200000 64000 1,5,0.1,1.25 3x
claude-opus-4-5 200000 64000 5,25,0.5,6.25 3x
claude-opus-4-6 1000000 128000 5,25,0.5,6.25 3y
claude-opus-4-7 1000000 128000 5,25,0.5,6.25 3z
claude-opus-4-8 1000000 128000 5,25,0.5,6.25 40
claude-opus-5 1000000 128000 5,25,0.5,6.25 40
claude-opus-5-5 1000000 128000 4,20,0.2,5 40
claude-sonnet-4 200000 64000 3,15,0.3,3.75 3x
claude-sonnet-4-5 200000 64000 3,15,0.3,3.75 3x
claude-sonnet-4-6 1000000 64000 3,15,0.3,3.75 3y
claude-sonnet-5 1000000 128000 2,10,0.2,2.5 41
qwen3.5-plus 262144 65536 0.2,1.2,0.02,0.25 3x
qwen3.6-plus 262144 65536 0.5,3,0.05,0.625 3x
qwen3.8-flash 1000000 131072 0.15,0.47,0.016,0.2 3x
gemini-3-flash 1048576 65536 0.5,3,0.05,0 42
gemini-3.1-pro 1048576 65536 2,12,0.2,0 43
gemini-3.5-flash 1048576 65536 1.5,9,0.15,0 42
gemini-3.5-flash-lite 1048576 65536 0.3,2.5,0.03,0 42
gemini-3.6-flash 1048576 65536 1.5,7.5,0.15,0 42
gemini-3.7-flash 1048576 65536 1.5,7.5,0.15,0 43
gemini-3.8-flash 1048576 65536 1.5,7.5,0.15,0 43
big-pickle 200000 32000 - 44
deepseek-v4-flash 1000000 384000 0.14,0.28,0.028,0 45
deepseek-v4-flash-vision-exp 1000000 384000 0.14,0.28,0.028,0 46
deepseek-v4-pro 1000000 384000 1.74,3.84,0.145,0 47
deepseek-v4.1-flash 1000000 384000 0.3,1.2,0.006,0 46
glm-5 204800 131072 1,3.2,0.2,0 44
glm-5.1 204800 131072 1.4,4.4,0.26,0 44
glm-5.2 1000000 131072 1.4,4.4,0.26,0 48
glm-5.3 1000000 131072 1.4,4.4,0.26,0 49
glm-5.3-flash 1000000 131072 0.15,0.5,0.03,0 4a
kimi-k2.5 262144 65536 0.6,3,0.08,0 4b
kimi-k2.6 262144 65536 0.95,4,0.16,0 4c
kimi-k2.7-code 262144 262144 0.95,4,0.19,0 4d
kimi-k3 1048576 131072 3,15,0.3,0 4e
ling-3.0-flash-fin-free 262144 32768 0,0,0,0 44
mimo-v2.6-flash-free 200000 32000 0,0,0,0 4d
minimax-m2.5 204800 131072 0.3,1.2,0.06,0 44
minimax-m2.7 204800 131072 0.3,1.2,0.06,0 4f
minimax-m3 512000 128000 0.3,1.2,0.06,0 4d
nemotron-3-ultra-free 1000000 128000 0,0,0,0 44
nemotron-3.5-lightning-free 262144 262144 0,0,0,0 44
gpt-5 400000 128000 1.07,8.5,0.107,0 4g
gpt-5-codex 400000 128000 1.07,8.5,0.107,0 4h
gpt-5-nano 400000 128000 0.05,0.4,0.005,0 4g
gpt-5.1 400000 128000 1.07,8.5,0.107,0 4h
gpt-5.1-codex 400000 128000 1.07,8.5,0.107,0 4h
gpt-5.1-codex-max 400000 128000 1.25,10,0.125,0 4i
gpt-5.1-codex-mini 400000 128000 0.25,2,0.025,0 4h
gpt-5.2 400000 128000 1.75,14,0.175,0 4i
gpt-5.2-codex 400000 128000 1.75,14,0.175,0 4i
gpt-5.3-codex 400000 128000 1.75,14,0.175,0 4i
gpt-5.4 272000 128000 2.5,15,0.25,0 4j
gpt-5.4-mini 400000 128000 0.75,4.5,0.075,0 4j
gpt-5.4-nano 400000 128000 0.2,1.25,0.02,0 4i
gpt-5.4-pro 1050000 128000 30,180,30,0 4k
gpt-5.5 1050000 128000 5,30,0.5,0 4j
gpt-5.5-pro 1050000 128000 30,180,30,0 4l
gpt-5.6-luna 1050000 128000 0.2,1.2,0.02,0.25 4m
gpt-5.6-sol 1050000 128000 4,20,0.4,5 4m
gpt-5.6-terra 1050000 128000 2.5,15,0.25,3.125 4m
gpt-6-astra 1050000 128000 10,50,1,12.5 4m
gpt-6-luna 1050000 128000 0.1,0.5,0.01,0.125 4n
gpt-6-sol 1050000 128000 2,10,0.2,2.5 4n
grok-4.5 500000 500000 2,6,0.3,0 4o
grok-4.6 500000 500000 2,6,0.5,0 4p
grok-build-0.1 256000 256000 1,2,0.2,0 4q
muse-spark-1.2 1048576 131072 1.25,4.25,0.15,0 4r
muse-spark-1.2-contributor-free 1048576 131072 0,0,0,0 4r
muse-spark-1.3 1048576 131072 1.25,4.25,0.15,0 4r
muse-spark-1.3-contributor-free 1048576 131072 0,0,0,0 4r
`,
  ],
  "opencode-go": [
    "OpenCode Go",
    ["openai-completions https://opencode.ai/zen/go/v1","openai-responses https://opencode.ai/zen/go/v1","anthropic-messages https://opencode.ai/zen/go"],
    `
minimax-m3 1000000 131072 0.3,1.2,0.06,0 3x
qwen3.8-flash 1000000 131072 0.15,0.47,0.016,0.2 3x
deepseek-v4-flash 1000000 384000 0.15,0.6,0.003,0 4s
deepseek-v4-flash-vision-exp 1000000 384000 0.15,0.6,0.003,0 25
deepseek-v4-pro 1000000 384000 0.66,1.98,0.022,0 4t
deepseek-v4.1-flash 1000000 384000 0.15,0.6,0.003,0 4u
glm-5.1 202752 32768 1.4,4.4,0.26,0 4v
glm-5.2 1000000 131072 1.4,4.4,0.26,0 4w
glm-5.3 1000000 131072 1.4,4.4,0.26,0 4x
glm-5.3-flash 1000000 131072 0.15,0.5,0.03,0 4y
hy3 256000 128000 0.14,0.58,0.035,0 4z
hy4-preview 1024000 64000 0.834,2.501,0.042,0 50
kimi-k2.6 262144 65536 0.95,4,0.16,0 51
kimi-k2.7-code 262144 262144 0.95,4,0.19,0 52
kimi-k3 1048576 131072 3,15,0.3,0 53
longcat-2.0 1000000 131072 0.3,1.2,0.006,0 4v
mimo-v2.5 1000000 128000 0.14,0.28,0.0028,0 52
mimo-v2.5-pro 1048576 128000 0.435,0.87,0.003625,0 4v
mimo-v2.6-flash 1048576 131072 0.14,0.28,0.0028,0 52
mimo-v2.6-pro 1048576 131072 0.435,0.87,0.003625,0 52
minimax-m2.7 204800 131072 0.3,1.2,0.06,0.375 4v
qwen3.6-plus 1000000 65536 0.5,3,0.05,0.625 54
qwen3.7-max 1000000 65536 2.5,7.5,0.5,3.125 4v
qwen3.7-plus 1000000 65536 0.4,1.6,0.04,0.5 52
qwen3.8-max 1000000 131072 2,6,0.25,2.5 55
gpt-5.6-luna 1050000 128000 0.2,1.2,0.02,0.25 56
grok-4.6 500000 500000 2,6,0.5,0 57
grok-4.7 500000 500000 2,6,0.5,0 57
muse-spark-1.2-contributor 1048576 131072 0.1,0.2,0.002,0 58
muse-spark-1.3-contributor 1048576 131072 0.1,0.2,0.002,0 58
`,
  ],
  "openrouter": [
    "OpenRouter",
    ["openai-completions https://openrouter.ai/api/v1","anthropic-messages https://openrouter.ai/api"],
    `
anthropic/claude-3-haiku 200000 4096 0.25,1.25,0.03,0.3 9
anthropic/claude-fable-5 1000000 128000 10,50,1,12.5 59
anthropic/claude-fable-5.1 1000000 128000 10,50,0.25,12.5 5a
anthropic/claude-haiku-4.5 200000 64000 1,5,0.1,1.25 8
anthropic/claude-opus-4.1 200000 32000 15,75,1.5,18.75 8
anthropic/claude-opus-4.5 200000 64000 5,25,0.5,6.25 8
anthropic/claude-opus-4.6 1000000 128000 5,25,0.5,6.25 5b
anthropic/claude-opus-4.7 1000000 128000 5,25,0.5,6.25 5c
anthropic/claude-opus-4.8 1000000 128000 5,25,0.5,6.25 5c
anthropic/claude-opus-5 1000000 128000 5,25,0.5,6.25 5c
anthropic/claude-opus-5.5 1000000 128000 4,20,0.2,5 5d
anthropic/claude-sonnet-4 200000 64000 3,15,0.3,3.75 8
anthropic/claude-sonnet-4.5 1000000 64000 3,15,0.3,3.75 8
anthropic/claude-sonnet-4.6 1000000 128000 3,15,0.3,3.75 5b
anthropic/claude-sonnet-5 1000000 128000 2,10,0.2,2.5 5e
aion-labs/aion-2.0 1048576 32768 0.8,1.6,0.2,0 5f
aion-labs/aion-3.0 1048576 32768 3,6,0.75,0 5f
aion-labs/aion-3.0-mini 1048576 32768 0.7,1.4,0.18,0 5f
amazon/nova-2-lite-v1 1000000 65535 0.3,2.5,0,0 5g
amazon/nova-lite-v1 300000 5120 0.06,0.24,0,0 5h
amazon/nova-micro-v1 128000 5120 0.035,0.14,0,0 5i
amazon/nova-premier-v1 1000000 32000 2.5,12.5,0.625,0 5h
amazon/nova-pro-v1 300000 5120 0.8,3.2,0,0 5h
anthropic/claude-fable-5.1:batch 1000000 128000 5,25,0.125,6.25 5j
anthropic/claude-fable-5:batch 1000000 128000 5,25,0.5,6.25 5j
anthropic/claude-haiku-4.5:batch 200000 64000 0.5,2.5,0.05,0.625 5k
anthropic/claude-opus-4.1:batch 200000 32000 7.5,37.5,0.75,9.375 5k
anthropic/claude-opus-4.5:batch 200000 64000 2.5,12.5,0.25,3.125 5k
anthropic/claude-opus-4.6:batch 1000000 128000 2.5,12.5,0.25,3.125 5l
anthropic/claude-opus-4.7:batch 1000000 128000 2.5,12.5,0.25,3.125 5m
anthropic/claude-opus-4.8:batch 1000000 128000 2.5,12.5,0.25,3.125 5m
anthropic/claude-opus-5.5:batch 1000000 128000 2,10,0.1,2.5 5j
anthropic/claude-opus-5:batch 1000000 128000 2.5,12.5,0.25,3.125 5m
anthropic/claude-sonnet-4.5:batch 1000000 64000 1.5,7.5,0.15,1.875 5k
anthropic/claude-sonnet-4.6:batch 1000000 128000 1.5,7.5,0.15,1.875 5l
anthropic/claude-sonnet-5:batch 1000000 128000 1,5,0.1,1.25 5m
arcee-ai/trinity-large-thinking 262144 80000 0.25,0.8,0.06,0 5f
auto 2000000 30000 - 5g
bytedance-seed/seed-1.6 262144 32768 0.25,2,0,0 5g
bytedance-seed/seed-1.6-flash 262144 32768 0.075,0.3,0,0 5g
bytedance-seed/seed-2-1-turbo 262144 235929 0.5,2.5,0,0 5g
bytedance-seed/seed-2.0-code 262144 131072 0.5,3,0,0 5n
bytedance-seed/seed-2.0-lite 262144 131072 0.25,2,0,0 5o
bytedance-seed/seed-2.0-mini 262144 131072 0.1,0.4,0,0 5o
cohere/command-r-08-2024 128000 4000 0.15,0.6,0,0 5i
cohere/command-r-plus-08-2024 128000 4000 2.5,10,0,0 5i
cohere/north-mini-code:free 256000 64000 0,0,0,0 5p
deepseek/deepseek-chat 163840 16384 0.32,0.89,0,0 5i
deepseek/deepseek-chat-v3-0324 163840 147456 0.25,1,0,0 5i
deepseek/deepseek-chat-v3.1 163840 32768 0.25,0.95,0.13,0 5p
deepseek/deepseek-r1 64000 16000 0.7,2.5,0,0 5f
deepseek/deepseek-r1-0528 163840 32768 0.5,2.15,0.35,0 5f
deepseek/deepseek-v3.1-terminus 131072 32768 0.27,1,0.135,0 5p
deepseek/deepseek-v3.2 163840 65536 0.269,0.4,0.1345,0 5p
deepseek/deepseek-v3.2-exp 163840 65536 0.27,0.41,0,0 5p
deepseek/deepseek-v4-flash 1024000 384000 0.049,0.098,0.0098,0 5q
deepseek/deepseek-v4-flash-0731 1048576 943718 0.04,0.64,0.016,0 5r
deepseek/deepseek-v4-flash-vision-exp 1048576 943718 0.22,0.66,0.007,0 5s
deepseek/deepseek-v4-pro 1024000 384000 0.895578,1.791156,0.074632,0 5q
deepseek/deepseek-v4-pro-0813 1048576 384000 0.66,1.98,0.022,0 5r
deepseek/deepseek-v4.1-flash 1048576 384000 0.15,0.6,0.003,0 5s
deepseek/deepseek-v4.1-flash:batch 1048576 131072 0.112,0.336,0.00336,0 5s
dots-studio/dots-3-note-preview:free 512000 460800 0,0,0,0 5g
google/gemini-2.5-flash 1048576 65535 0.3,2.5,0.03,0.083333 5g
google/gemini-2.5-flash-lite 1048576 65535 0.1,0.4,0.01,0.083333 5g
google/gemini-2.5-flash-lite:batch 1048576 65535 0.05,0.2,0.01,0 5g
google/gemini-2.5-flash:batch 1048576 65535 0.15,1.25,0.03,0 5g
google/gemini-2.5-pro 1048576 65536 1.25,10,0.125,0.375 5t
google/gemini-2.5-pro-preview 1048576 65536 1.25,10,0.125,0.375 5t
google/gemini-2.5-pro:batch 1048576 65536 0.625,5,0.125,0 5t
google/gemini-3-flash-preview 1048576 65536 0.5,3,0.05,0.083333 5o
google/gemini-3-flash-preview:batch 1048576 65536 0.25,1.5,0,0 5o
google/gemini-3-pro-image 65536 32768 2,12,0.2,0.375 5t
google/gemini-3.1-flash-lite 1048576 65536 0.25,1.5,0.025,0.083333 5o
google/gemini-3.1-flash-lite-preview 1048576 65536 0.25,1.5,0.025,0.083333 5o
google/gemini-3.1-flash-lite:batch 1048576 65536 0.125,0.75,0.0125,0 5o
google/gemini-3.1-pro-preview 1048576 65536 2,12,0.2,0.375 5u
google/gemini-3.1-pro-preview-customtools 1048576 65536 2,12,0.2,0.375 5u
google/gemini-3.1-pro-preview:batch 1048576 65536 1,6,0,0 5u
google/gemini-3.5-flash 1048576 65536 1.5,9,0.15,0.083333 5v
google/gemini-3.5-flash-lite 1048576 65536 0.3,2.5,0.03,0.083333 5v
google/gemini-3.5-flash-lite:batch 1048576 65536 0.15,1.25,0.015,0 5v
google/gemini-3.5-flash:batch 1048576 65536 0.75,4.5,0.075,0 5v
google/gemini-3.6-flash 1048576 65536 0.75,3.75,0.075,0.041667 5v
google/gemini-3.6-flash:batch 1048576 65536 0.375,1.875,0.0375,0.041667 5v
google/gemini-3.7-flash 1048576 65536 0.75,3.75,0.075,0.041667 5u
google/gemini-3.7-flash:batch 1048576 65536 0.375,1.875,0.0375,0.041667 5u
google/gemini-3.8-flash 1048576 65536 0.75,3.75,0.075,0.041667 5u
google/gemini-3.8-flash:batch 1048576 65536 0.375,1.875,0.0375,0.041667 5u
google/gemma-3-12b-it 131072 16384 0.05,0.15,0,0 5h
google/gemma-3-27b-it 131072 117964 0.08,0.45,0.04,0 5h
google/gemma-4-26b-a4b-it 262144 235929 0.09,0.3,0.05,0 5g
google/gemma-4-26b-a4b-it:free 262144 32768 0,0,0,0 5g
google/gemma-4-31b-it 262144 16384 0.09,0.34,0.05,0 5g
google/gemma-4-31b-it:free 262144 32768 0,0,0,0 5g
ibm-granite/granite-4.2-8b 131072 117964 0.06,0.25,0.015,0 5w
inception/mercury-2 128000 50000 0.25,0.75,0.025,0 5x
inception/mercury-2.5 260000 65536 0.04,0.15,0.004,0 5x
inclusionai/ling-3.0-flash 262144 32768 0.021,0.063,0.0042,0 5p
inclusionai/ling-3.0-flash-fin 262144 235929 0.06,0.18,0.012,0 5p
inclusionai/ling-3.0-flash-fin:free 262144 32768 0,0,0,0 5p
inclusionai/ling-3.0-flash-sante:free 262144 32768 0,0,0,0 5p
inclusionai/ling-3.0-flash-vl 131072 32768 0.06,0.18,0.012,0 5g
inclusionai/ling-3.0-flash-vl:free 262144 32768 0,0,0,0 5g
kwaipilot/kat-coder-pro-v2.5 262144 235929 0.74,2.96,0.15,0 5i
liquid/lfm-2.5-2.6b:free 65536 8192 0,0,0,0 5f
meituan/longcat-2.0 1048756 262144 0.3,1.2,0.006,0 5p
meta-llama/llama-3.1-70b-instruct 131072 16384 0.4,0.4,0,0 5i
meta-llama/llama-3.1-8b-instruct 131072 117964 0.05,0.08,0.025,0 5i
meta-llama/llama-3.3-70b-instruct 131072 16384 0.1,0.32,0,0 5i
meta-llama/llama-4-maverick 128000 16384 0.1875,0.6525,0,0 5h
meta-llama/llama-4-scout 327680 16384 0.1,0.3,0,0 5h
meta/muse-glimmer-30b 131072 16384 0.3,1.2,0.04,0 5y
meta/muse-spark-1.1 1048576 943718 1.25,4.25,0.15,0 5z
meta/muse-spark-1.2 1048576 943718 1.25,4.25,0.15,0 5z
meta/muse-spark-1.2-contributor 1048576 943718 0.1,0.2,0.002,0 5z
meta/muse-spark-1.3 1048576 943718 1.25,4.25,0.15,0 60
meta/muse-spark-1.3-contributor 1048576 943718 0.1,0.2,0.002,0 60
minimax/minimax-m1 1000000 40000 0.4,2.2,0,0 5p
minimax/minimax-m2 204800 131072 0.255,1.02,0,0 5f
minimax/minimax-m2.1 204800 131072 0.3,1.2,0.03,0 5f
minimax/minimax-m2.5 200000 128000 0.27,1.08,0.027,0 5f
minimax/minimax-m2.7 204800 131072 0.3,1.2,0.06,0 5f
minimax/minimax-m3 524288 512000 0.3,1.2,0.06,0 5g
mistralai/codestral-2508 256000 204800 0.3,0.9,0.03,0 5i
mistralai/codestral-2508:batch 256000 204800 0.15,0.45,0.015,0 5i
mistralai/devstral-2512 262144 209715 0.4,2,0.04,0 5i
mistralai/ministral-14b-2512 262144 209715 0.2,0.2,0.02,0 5h
mistralai/ministral-3b-2512 131072 104857 0.1,0.1,0.01,0 5h
mistralai/ministral-8b-2512 262144 209715 0.15,0.15,0.015,0 5h
mistralai/ministral-8b-2512:batch 262144 209715 0.075,0.075,0.0075,0 5h
mistralai/mistral-large 128000 102400 2,6,0.2,0 5i
mistralai/mistral-large-2407 131072 104857 2,6,0.2,0 5i
mistralai/mistral-large-2512:batch 262144 209715 0.25,0.75,0.025,0 5h
mistralai/mistral-medium-3 131072 104857 0.4,2,0.04,0 5h
mistralai/mistral-medium-3-5 262144 209715 1.5,7.5,0,0 61
mistralai/mistral-medium-3-5:batch 262144 209715 0.75,3.75,0,0 61
mistralai/mistral-medium-3.1 131072 104857 0.4,2,0.04,0 5h
mistralai/mistral-medium-3.1:batch 131072 104857 0.2,1,0.02,0 5h
mistralai/mistral-nemo 131072 16384 0.019,0.03,0,0 5i
mistralai/mistral-saba 32768 26214 0.2,0.6,0.02,0 5i
mistralai/mistral-small-2603 262144 209715 0.15,0.6,0.015,0 61
mistralai/mistral-small-2603:batch 262144 209715 0.075,0.3,0.0075,0 61
mistralai/mistral-small-3.1-24b-instruct 128000 102400 0.351,0.555,0,0 5h
mistralai/mistral-small-3.2-24b-instruct 256000 16384 0.09375,0.25,0,0 5h
mistralai/mixtral-8x22b-instruct 65536 52428 2,6,0.2,0 5i
mistralai/voxtral-small-24b-2507 32768 26214 0.1,0.3,0.01,0 5i
moonshotai/kimi-k2 131072 98304 0.57,2.3,0,0 5i
moonshotai/kimi-k2-0905 262144 98304 0.6,2.5,0,0 5i
moonshotai/kimi-k2-thinking 262144 98304 0.6,2.5,0.15,0 5f
moonshotai/kimi-k2.5 262144 4096 0.41,2.06,0.07,0 5g
moonshotai/kimi-k2.6 262144 235929 0.95,4,0.16,0 62
moonshotai/kimi-k2.7-code 262144 235929 0.7062,3.3,0.18,0 5t
moonshotai/kimi-k3 1048576 131072 3,15,0.3,0 63
moonshotai/kimi-k3:batch 1048576 16384 2.28,11.4,0.228,0 63
nex-agi/nex-n2.5-mini:free 262144 235929 0,0,0,0 64
nex-agi/nex-n2.5-pro 262144 235929 0.075,0.25,0.015,0 64
nex-agi/nex-n2.5-pro:free 262144 235929 0,0,0,0 64
nvidia/nemotron-3-nano-30b-a3b 262144 235929 0.05,0.2,0.03,0 5p
nvidia/nemotron-3-nano-omni-30b-a3b-reasoning:free 256000 65536 0,0,0,0 5g
nvidia/nemotron-3-super-120b-a12b 262144 235929 0.08,0.45,0,0 65
nvidia/nemotron-3-super-120b-a12b:free 262144 235929 0,0,0,0 65
nvidia/nemotron-3-ultra-550b-a55b 202800 182520 0.6,2.4,0.12,0 66
nvidia/nemotron-3-ultra-550b-a55b:free 1000000 65536 0,0,0,0 66
nvidia/nemotron-3.5-lightning 262144 235929 0.07,0.2,0.04,0 5p
nvidia/nemotron-3.5-lightning:free 1000000 65536 0,0,0,0 5p
openai/gpt-3.5-turbo 16385 4096 0.5,1.5,0,0 67
openai/gpt-3.5-turbo-0613 4095 3685 1,2,0,0 67
openai/gpt-3.5-turbo-16k 16385 4096 3,4,0,0 67
openai/gpt-3.5-turbo:batch 16385 4096 0.25,0.75,0,0 67
openai/gpt-4 8191 4096 30,60,0,0 67
openai/gpt-4-turbo 128000 4096 10,30,0,0 68
openai/gpt-4-turbo:batch 128000 4096 5,15,0,0 68
openai/gpt-4.1 1047576 32768 2,8,0.5,0 68
openai/gpt-4.1-mini 1047576 32768 0.4,1.6,0.1,0 68
openai/gpt-4.1-mini:batch 1047576 32768 0.2,0.8,0.05,0 68
openai/gpt-4.1-nano 1047576 32768 0.1,0.4,0.025,0 68
openai/gpt-4.1-nano:batch 1047576 32768 0.05,0.2,0.0125,0 68
openai/gpt-4.1:batch 1047576 32768 1,4,0.25,0 68
openai/gpt-4o 128000 16384 2.5,10,1.25,0 68
openai/gpt-4o-2024-05-13 128000 4096 5,15,0,0 68
openai/gpt-4o-2024-08-06 128000 16384 2.5,10,1.25,0 68
openai/gpt-4o-2024-11-20 128000 16384 2.5,10,1.25,0 68
openai/gpt-4o-mini 128000 16384 0.15,0.6,0.075,0 68
openai/gpt-4o-mini-2024-07-18 128000 16384 0.15,0.6,0.075,0 68
openai/gpt-4o-mini:batch 128000 16384 0.075,0.3,0.0375,0 68
openai/gpt-4o:batch 128000 16384 1.25,5,0.625,0 68
openai/gpt-5 400000 128000 1.25,10,0.125,0 69
openai/gpt-5-mini 400000 128000 0.25,2,0.025,0 69
openai/gpt-5-mini:batch 400000 128000 0.125,1,0.0125,0 69
openai/gpt-5-nano 400000 128000 0.05,0.4,0.005,0 69
openai/gpt-5-nano:batch 400000 128000 0.025,0.2,0.0025,0 69
openai/gpt-5-pro 400000 128000 15,120,0,0 6a
openai/gpt-5-pro:batch 400000 128000 7.5,60,0,0 6a
openai/gpt-5.1 400000 128000 1.25,10,0.125,0 6b
openai/gpt-5.1-codex 400000 128000 1.25,10,0.13,0 6c
openai/gpt-5.1-codex-max 400000 128000 1.25,10,0.125,0 6d
openai/gpt-5.1-codex-mini 400000 128000 0.25,2,0.03,0 6b
openai/gpt-5.1:batch 400000 128000 0.625,5,0.0625,0 6b
openai/gpt-5.2 400000 128000 1.75,14,0.175,0 6e
openai/gpt-5.2-chat 128000 32000 1.75,14,0.175,0 6f
openai/gpt-5.2-codex 400000 128000 1.75,14,0.175,0 6d
openai/gpt-5.2-pro 400000 128000 21,168,0,0 6g
openai/gpt-5.2-pro:batch 400000 128000 10.5,84,0,0 6g
openai/gpt-5.2:batch 400000 128000 0.875,7,0.0875,0 6e
openai/gpt-5.3-codex 400000 128000 1.75,14,0.175,0 6e
openai/gpt-5.4 1050000 128000 2.5,15,0.25,0 6h
openai/gpt-5.4-mini 400000 128000 0.75,4.5,0.075,0 6h
openai/gpt-5.4-mini:batch 400000 128000 0.375,2.25,0.0375,0 6e
openai/gpt-5.4-nano 400000 128000 0.2,1.25,0.02,0 6e
openai/gpt-5.4-nano:batch 400000 128000 0.1,0.625,0.01,0 6e
openai/gpt-5.4-pro 1050000 128000 30,180,0,0 6i
openai/gpt-5.4-pro:batch 1050000 128000 15,90,0,0 6g
openai/gpt-5.4:batch 1050000 128000 1.25,7.5,0.125,0 6e
openai/gpt-5.5 1050000 128000 5,30,0.5,0 6h
openai/gpt-5.5-pro 1050000 128000 30,180,0,0 6g
openai/gpt-5.5-pro:batch 1050000 128000 15,90,0,0 6g
openai/gpt-5.5:batch 1050000 128000 2.5,15,0.25,0 6e
openai/gpt-5.6-luna 1050000 128000 0.2,1.2,0.02,0.25 6j
openai/gpt-5.6-luna-pro 1050000 128000 0.2,1.2,0.02,0.25 6k
openai/gpt-5.6-luna-pro:batch 1050000 128000 0.1,0.6,0.01,0 6k
openai/gpt-5.6-luna:batch 1050000 128000 0.1,0.6,0.01,0 6k
openai/gpt-5.6-sol 1050000 128000 2,10,0.2,2.5 6j
openai/gpt-5.6-sol-pro 1050000 128000 2,10,0.2,2.5 6k
openai/gpt-5.6-sol-pro:batch 1050000 128000 1,5,0.1,1.25 6k
openai/gpt-5.6-sol:batch 1050000 128000 1,5,0.1,1.25 6k
openai/gpt-5.6-terra 1050000 128000 2,12,0.2,2.5 6j
openai/gpt-5.6-terra-pro 1050000 128000 2,12,0.2,2.5 6k
openai/gpt-5.6-terra-pro:batch 1050000 128000 1,6,0.1,0 6k
openai/gpt-5.6-terra:batch 1050000 128000 1,6,0.1,0 6k
openai/gpt-5:batch 400000 128000 0.625,5,0.0625,0 69
openai/gpt-6-astra 1050000 128000 10,50,1,12.5 6l
openai/gpt-6-astra-pro 1050000 128000 10,50,1,12.5 6m
openai/gpt-6-astra-pro:batch 1050000 128000 5,25,0.5,6.25 6m
openai/gpt-6-astra:batch 1050000 128000 5,25,0.5,6.25 6m
openai/gpt-6-luna 1050000 128000 0.1,0.5,0.01,0.125 6j
openai/gpt-6-luna-pro 1050000 128000 0.1,0.5,0.01,0.125 6k
openai/gpt-6-luna-pro:batch 1050000 128000 0.05,0.25,0.005,0.0625 6k
openai/gpt-6-luna:batch 1050000 128000 0.05,0.25,0.005,0.0625 6k
openai/gpt-6-sol 1050000 128000 2,10,0.2,2.5 6j
openai/gpt-6-sol-pro 1050000 128000 2,10,0.2,2.5 6k
openai/gpt-6-sol-pro:batch 1050000 128000 1,5,0.1,1.25 6k
openai/gpt-6-sol:batch 1050000 128000 1,5,0.1,1.25 6k
openai/gpt-audio 128000 16384 2.5,10,0,0 67
openai/gpt-audio-mini 128000 16384 0.6,2.4,0,0 67
openai/gpt-chat-latest 400000 128000 5,30,0.5,0 68
openai/gpt-oss-120b 131072 65536 0.15,0.6,0.075,0 6n
openai/gpt-oss-20b 131072 32768 0.018,0.09,0,0 6n
openai/gpt-oss-20b:batch 131072 117964 0.024,0.112,0,0 6n
openai/gpt-oss-safeguard-20b 131072 65536 0.075,0.3,0.0375,0 6o
openai/o1 200000 100000 15,60,7.5,0 6p
openai/o3 200000 100000 2,8,0.5,0 6p
openai/o3-mini 200000 100000 1.1,4.4,0.55,0 6q
openai/o3-mini-high 200000 100000 1.1,4.4,0.55,0 6r
openai/o3-mini:batch 200000 100000 0.55,2.2,0.275,0 6q
openai/o3-pro 200000 100000 20,80,0,0 6p
openai/o3:batch 200000 100000 1,4,0.25,0 6p
openai/o4-mini 200000 100000 1.1,4.4,0.275,0 6p
openai/o4-mini-high 200000 100000 1.1,4.4,0.275,0 6a
openai/o4-mini:batch 200000 100000 0.55,2.2,0.1375,0 6p
openrouter/auto 2000000 4096 - 5g
openrouter/auto-beta 2000000 4096 - 5g
openrouter/free 200000 4096 - 5g
openrouter/fusion 1000000 30000 - 5p
poolside/laguna-s-2.1 1048576 131072 0.09,0.18,0.009,0 5p
poolside/laguna-s-2.1:free 262144 32768 0,0,0,0 5p
poolside/laguna-xs-2.1 262144 32768 0.06,0.12,0.03,0 5p
poolside/laguna-xs-2.1:free 262144 32768 0,0,0,0 5p
prism-ml/ternary-bonsai-2-27b 262144 32768 0.075,0.5,0,0 6s
qwen/qwen-2.5-72b-instruct 32768 16384 0.36,0.4,0,0 5i
qwen/qwen-2.5-7b-instruct 32768 29491 0.1,0.2,0,0 5i
qwen/qwen-plus 1000000 32768 0.26,0.78,0.052,0.325 5i
qwen/qwen-plus-2025-07-28 1000000 32768 0.26,0.78,0,0 5i
qwen/qwen3-14b 40960 16384 0.12,0.24,0,0 5p
qwen/qwen3-235b-a22b 131072 8192 0.455,1.82,0,0 5p
qwen/qwen3-235b-a22b-2507 262144 235929 0.0875,0.35,0.0175,0 5i
qwen/qwen3-235b-a22b-thinking-2507 131072 117964 0.23,2.3,0,0 5f
qwen/qwen3-30b-a3b 40960 16384 0.12,0.5,0,0 5p
qwen/qwen3-30b-a3b-instruct-2507 128000 32000 0.04815,0.19305,0,0 5i
qwen/qwen3-30b-a3b-thinking-2507 81920 32768 0.2,2.4,0,0 5f
qwen/qwen3-32b 40960 16384 0.08,0.28,0,0 5p
qwen/qwen3-8b 131072 8192 0.117,0.455,0,0 5p
qwen/qwen3-coder 262144 65536 0.3,1,0.1,0 5i
qwen/qwen3-coder-30b-a3b-instruct 262144 235929 0.07,0.28,0,0 5i
qwen/qwen3-coder-flash 1000000 65536 0.195,0.975,0.039,0.24375 5i
qwen/qwen3-coder-next 262144 235929 0.12,0.8,0.07,0 5i
qwen/qwen3-coder-plus 1000000 65536 0.65,3.25,0.13,0.8125 5i
qwen/qwen3-max 262144 65536 0.78,3.9,0.156,0.975 5i
qwen/qwen3-max-thinking 262144 65536 0.78,3.9,0,0 5p
qwen/qwen3-next-80b-a3b-instruct 262144 16384 0.09,1.1,0,0 5i
qwen/qwen3-next-80b-a3b-thinking 262144 235929 0.15,1.2,0,0 5f
qwen/qwen3-vl-235b-a22b-instruct 131072 32768 0.21,1.9,0.1,0 5h
qwen/qwen3-vl-235b-a22b-thinking 131072 32768 0.4,4,0,0 5t
qwen/qwen3-vl-30b-a3b-instruct 131072 32768 0.13,0.52,0,0 5h
qwen/qwen3-vl-30b-a3b-thinking 131072 32768 0.2,2.4,0,0 5t
qwen/qwen3-vl-32b-instruct 131072 32768 0.104,0.416,0,0 5h
qwen/qwen3-vl-8b-instruct 131072 32768 0.117,0.455,0,0 5h
qwen/qwen3-vl-8b-thinking 131072 32768 0.18,2.1,0,0 5t
qwen/qwen3.5-122b-a10b 262144 65536 0.26,2.08,0,0 5g
qwen/qwen3.5-27b 262144 65536 0.195,1.56,0,0 5g
qwen/qwen3.5-35b-a3b 256000 16384 0.3125,1.25,0.15625,0 5g
qwen/qwen3.5-397b-a17b 262144 235929 0.55,3.5,0.225,0 5g
qwen/qwen3.5-9b 256000 32768 0.1,0.15,0,0 5g
qwen/qwen3.5-flash-02-23 1000000 65536 0.065,0.26,0,0 5g
qwen/qwen3.5-plus-02-15 1000000 65536 0.26,1.56,0,0 5g
qwen/qwen3.5-plus-20260420 1000000 65536 0.3,1.8,0,0.375 5g
qwen/qwen3.6-27b 262144 262140 0.32,2.7,0.15,0 5g
qwen/qwen3.6-35b-a3b 262144 235929 0.15,1,0.05,0 5g
qwen/qwen3.6-flash 1000000 65536 0.1875,1.125,0,0.234375 5g
qwen/qwen3.6-max-preview 262144 65536 1.027,6.162,0,1.28375 5p
qwen/qwen3.6-plus 1000000 65536 0.325,1.95,0,0.40625 5g
qwen/qwen3.7-flash 1000000 65536 0.03,0.13,0.006,0.038 5g
qwen/qwen3.7-max 1000000 131072 1.475,4.425,0.295,1.84375 5p
qwen/qwen3.7-plus 1000000 131072 0.32,1.28,0.064,0.4 5g
qwen/qwen3.8-2.4t-a95b 1000000 131072 2,6,0.25,0 6t
qwen/qwen3.8-27b 1000000 131072 0.42,3,0.085,0 6u
qwen/qwen3.8-27b:free 262144 235929 0,0,0,0 6u
qwen/qwen3.8-flash 1000000 131072 0.15,0.47,0.016,0.2 5g
qwen/qwen3.8-max-0902 1000000 131072 2,6,0.25,2.5 5z
qwen/qwen3.8-omni-flash 1000000 131072 0.15,0.47,0.016,0 5g
rekaai/reka-edge 16384 14745 0.1,0.1,0,0 5h
relace/relace-search 256000 128000 1,3,0,0 5i
sakana/fugu-max 1000000 128000 2,6,0.25,0 6v
sakana/fugu-ultra 1000000 128000 5,30,0.5,0 6v
sakana/fugu-ultra-v2 1000000 128000 5,30,0.5,0 6v
sakana/sakana-namazu 262144 65536 0.95,4,0.15,0 61
sao10k/l3.1-euryale-70b 131072 16384 0.85,0.85,0,0 5i
stepfun/step-3.5-flash 262144 65536 0.1,0.3,0,0 5f
stepfun/step-3.7-flash 256000 230400 0.2,1.15,0.04,0 5u
tencent/hy3 262144 128000 0.0825,0.33,0.020625,0 5w
tencent/hy3-preview 262144 235929 0.18,0.6,0.06,0 5w
tencent/hy4-preview 1048576 64000 0.834,2.501,0.042,0 5w
thinkingmachines/inkling 524288 471859 1,4.05,0.17,0 6w
thinkingmachines/inkling-small 524288 262144 0.45,1.2,0.1,0 6w
thinkingmachines/inkling-small:free 1048576 262144 0,0,0,0 6w
thinkingmachines/inkling:free 1048576 262144 0,0,0,0 6w
unbiased/pareto 262144 131072 2.5,7.5,0.25,0 5h
upstage/solar-pro-3 131072 117964 0.15,0.6,0.015,0 6x
upstage/solar-pro4 524288 131072 0.09,0.36,0.018,0 6y
x-ai/grok-4.20 2000000 1800000 1.25,2.5,0.2,0 5g
x-ai/grok-4.3 1000000 900000 1.25,2.5,0.2,0 5n
x-ai/grok-4.3:batch 1000000 900000 1,2,0.16,0 5n
x-ai/grok-4.5 500000 450000 2,6,0.3,0 5u
x-ai/grok-4.6 500000 450000 2,6,0.5,0 5y
x-ai/grok-4.7 500000 450000 1.6,4.8,0.4,0 5y
x-ai/grok-build-0.1 256000 230400 1,2,0.2,0 5t
xiaomi/mimo-v2.5 1048576 131072 0.14,0.28,0.0028,0 5g
xiaomi/mimo-v2.5-pro 1048576 131072 0.435,0.87,0.0036,0 5p
xiaomi/mimo-v2.6-flash 1048576 131072 0.14,0.28,0.0028,0 5g
xiaomi/mimo-v2.6-pro 1048576 131072 0.435,0.87,0.0036,0 5g
xiaomi/mimo-v2.6-pro-ultraspeed 1048576 131072 4.35,8.7,0.036,0 5g
z-ai/glm-4.5 131072 98304 0.6,2.2,0.11,0 5p
z-ai/glm-4.5-air 131072 98304 0.13,0.85,0.025,0 5p
z-ai/glm-4.5v 65536 16384 0.6,1.8,0.11,0 5g
z-ai/glm-4.6 198000 16384 0.43,1.75,0.08,0 5p
z-ai/glm-4.6v 131072 32768 0.3,0.9,0.055,0 5g
z-ai/glm-4.7 202752 131072 0.4,1.75,0.08,0 5p
z-ai/glm-4.7-flash 131072 117964 0.0605,0.4,0,0 5p
z-ai/glm-5 198000 128000 0.6,1.9,0.119,0 5p
z-ai/glm-5-turbo 202752 131072 1.2,4,0.24,0 5p
z-ai/glm-5.1 200000 128000 0.966,3.036,0.1794,0 5p
z-ai/glm-5.2 1048576 131072 0.6496,2.0416,0.12064,0 6z
z-ai/glm-5.3 1048576 131072 0.6538,2.0548,0.12142,0 70
z-ai/glm-5.3-flash 1048576 943718 0.15,0.5,0.05,0 71
z-ai/glm-5.3-flash:batch 1048576 131072 0.06,0.2,0.012,0 71
z-ai/glm-5.3-flashx 1048576 131072 0.37,1.25,0.075,0 71
z-ai/glm-5.3:batch 1048576 131072 0.72,2.4,0.12,0 70
z-ai/glm-5v-turbo 202752 131072 1.2,4,0.24,0 5g
~anthropic/claude-fable-latest 1000000 128000 10,50,0.25,12.5 72
~anthropic/claude-haiku-latest 200000 64000 1,5,0.1,1.25 73
~anthropic/claude-opus-latest 1000000 128000 4,20,0.2,5 72
~anthropic/claude-sonnet-latest 1000000 128000 2,10,0.2,2.5 74
~deepseek/deepseek-flash-latest 1048576 943718 0.12,0.48,0.0036,0 63
~deepseek/deepseek-pro-latest 1048576 393216 0.39996,1.19988,0.012726,0 75
~deepseek/deepseek-v4-flash-latest 1048576 943718 0.03,0.8,0.008,0 5r
~google/gemini-flash-latest 1048576 65536 0.75,3.75,0.075,0.041667 5u
~google/gemini-pro-latest 1048576 65536 2,12,0.2,0.375 5u
~moonshotai/kimi-latest 1048576 131072 1.4989,10.758,0.3,0 63
~openai/gpt-astra-latest 1050000 128000 10,50,1,12.5 76
~openai/gpt-luna-latest 1050000 128000 0.1,0.5,0.01,0.125 77
~openai/gpt-mini-latest 400000 128000 0.75,4.5,0.075,0 78
~openai/gpt-sol-latest 1050000 128000 2,10,0.2,2.5 77
~openai/gpt-terra-latest 1050000 128000 2,12,0.2,2.5 77
~x-ai/grok-latest 500000 450000 1.6,4.8,0.4,0 5y
~z-ai/glm-flash-latest 1048576 943718 0.075,0.25,0.015,0 71
~z-ai/glm-latest 1048576 131072 0.6538,2.0548,0.12142,0 70
`,
  ],
  "qwen-token-plan": [
    "Qwen Token Plan",
    ["openai-completions https://token-plan.ap-southeast-1.maas.aliyuncs.com/compatible-mode/v1"],
    `
MiniMax-M2.5 196608 32768 - 79
deepseek-v3.2 131072 65536 - 79
deepseek-v4-flash 1000000 384000 - 7a
deepseek-v4-flash-0731 1000000 384000 - 7a
deepseek-v4-pro 1000000 384000 - 7a
deepseek-v4-pro-0813 1000000 384000 - 7a
deepseek-v4.1-flash 1000000 384000 - 7b
glm-5 202752 16384 - 7c
glm-5.1 202752 128000 - 7c
glm-5.2 1000000 131072 - 7a
glm-5.3 1000000 131072 - 7d
kimi-k2.5 262144 98304 - 7e
kimi-k2.6 262144 262144 - 7e
kimi-k2.7-code 262144 262144 - 7e
qwen3.6-flash 1000000 65536 - 7e
qwen3.6-plus 1000000 65536 - 7e
qwen3.7-max 1000000 131072 - 79
qwen3.7-plus 1000000 65536 - 7e
qwen3.8-flash 1000000 131072 - 7f
qwen3.8-max 1000000 131072 - 7f
`,
  ],
  "qwen-token-plan-cn": [
    "Qwen Token Plan CN",
    ["openai-completions https://token-plan.cn-beijing.maas.aliyuncs.com/compatible-mode/v1"],
    `
MiniMax-M2.5 196608 32768 - 79
deepseek-v3.2 131072 65536 - 79
deepseek-v4-flash 1000000 384000 - 7a
deepseek-v4-flash-0731 1000000 384000 - 7a
deepseek-v4-pro 1000000 384000 - 7a
deepseek-v4-pro-0813 1000000 384000 - 7a
deepseek-v4.1-flash 1000000 384000 - 7b
glm-5 202752 16384 - 7c
glm-5.1 202752 128000 - 7c
glm-5.2 1000000 131072 - 7a
glm-5.3 1000000 131072 - 7d
kimi-k2.5 262144 98304 - 7e
kimi-k2.6 262144 262144 - 7e
kimi-k2.7-code 262144 262144 - 7e
qwen3.6-flash 1000000 65536 - 7e
qwen3.6-plus 1000000 65536 - 7e
qwen3.7-max 1000000 131072 - 79
qwen3.7-plus 1000000 65536 - 7e
qwen3.8-flash 1000000 131072 - 7f
qwen3.8-max 1000000 131072 - 7f
`,
  ],
  "qwen-token-plan-individual": [
    "Qwen Token Plan Individual",
    ["openai-completions https://token-plan.ap-southeast-1.maas.aliyuncs.com/compatible-mode/v1"],
    `
deepseek-v4-flash-0731 1000000 384000 - 7a
deepseek-v4-pro 1000000 384000 - 7a
deepseek-v4-pro-0813 1000000 384000 - 7a
glm-5.2 1000000 131072 - 7a
qwen3.6-flash 1000000 65536 - 7e
qwen3.7-max 1000000 131072 - 79
qwen3.7-plus 1000000 65536 - 7e
qwen3.8-flash 1000000 131072 - 7f
qwen3.8-max 1000000 131072 - 7f
`,
  ],
  "together": [
    "Together",
    ["openai-completions https://api.together.ai/v1"],
    `
MiniMaxAI/MiniMax-M2.7 202752 131072 0.3,1.2,0.06,0 7g
MiniMaxAI/MiniMax-M3 524288 250000 0.3,1.2,0.06,0 7h
Qwen/Qwen2.5-7B-Instruct-Turbo 32768 32768 0.3,0.3,0,0 7i
Qwen/Qwen3.5-9B 262144 65536 0.17,0.25,0,0 7h
Qwen/Qwen3.6-Plus 1000000 500000 0.5,3,0,0 7j
Qwen/Qwen3.7-Max 1000000 500000 1.25,3.75,0.125,0 7i
deepseek-ai/DeepSeek-V4-Flash-0731 1000000 384000 0.14,0.28,0.03,0 7j
deepseek-ai/DeepSeek-V4-Pro 512000 384000 1.74,3.48,0.2,0 7k
deepseek-ai/DeepSeek-V4-Pro-0813 1048576 384000 1.32,3.96,0.13,0 7j
deepseek-ai/DeepSeek-V4.1-Flash 1048576 384000 0.3,1.2,0.006,0 7h
google/gemma-4-31B-it 262144 131072 0.39,0.97,0,0 7h
meta-llama/Llama-3.3-70B-Instruct-Turbo 131072 131072 1.04,1.04,0,0 7i
moonshotai/Kimi-K2.6 262144 131000 1.2,4.5,0.2,0 7h
moonshotai/Kimi-K2.7-Code 262144 131072 0.95,4,0.19,0 7j
moonshotai/Kimi-K3 1048576 131072 3,15,0.3,0 7h
nvidia/nemotron-3-ultra-550b-a55b 512300 512300 0.6,3.6,0.2,0 7j
openai/gpt-oss-120b 131072 131072 0.15,0.6,0,0 7l
openai/gpt-oss-20b 131072 131072 0.05,0.2,0,0 7l
thinkingmachines/Inkling 524288 131072 1,4.05,0.17,0 7h
zai-org/GLM-5.2 512000 164000 1.4,4.4,0.26,0 7j
zai-org/GLM-5.3 1048576 262144 1.4,4.4,0.26,0 7j
zai-org/GLM-5.3-Flash 1048575 400000 0.15,0.5,0.03,0 7h
`,
  ],
  "vercel-ai-gateway": [
    "Vercel AI Gateway",
    ["anthropic-messages https://ai-gateway.vercel.sh"],
    `
alibaba/qwen-3-14b 40960 16384 0.12,0.24,0,0 7m
alibaba/qwen-3-235b 262144 16384 0.22,0.88,0,0 7m
alibaba/qwen-3-30b 40960 16384 0.12,0.5,0,0 7m
alibaba/qwen-3-32b 128000 8192 0.16,0.64,0,0 7m
alibaba/qwen-3.6-max-preview 240000 64000 1.3,7.8,0.13,1.625 7m
alibaba/qwen3-235b-a22b-thinking 131072 32768 0.4,4,0,0 7n
alibaba/qwen3-coder 262144 65536 1.5,7.5,0.3,0 7o
alibaba/qwen3-coder-30b-a3b 262144 8192 0.15,0.6,0,0 7o
alibaba/qwen3-coder-next 256000 256000 0.5,1.2,0,0 7o
alibaba/qwen3-coder-plus 1000000 65536 1,5,0.2,0 7o
alibaba/qwen3-max 262144 32768 1.2,6,0.24,0 7o
alibaba/qwen3-max-preview 262144 32768 1.2,6,0.24,0 7o
alibaba/qwen3-max-thinking 256000 65536 1.2,6,0.24,0 7m
alibaba/qwen3-next-80b-a3b-instruct 262114 262114 0.15,1.2,0,0 7o
alibaba/qwen3-next-80b-a3b-thinking 262144 262144 0.15,1.2,0,0 7m
alibaba/qwen3-vl-235b-a22b-instruct 131072 129024 0.4,1.6,0,0 7p
alibaba/qwen3-vl-instruct 131072 129024 0.4,1.6,0,0 7p
alibaba/qwen3-vl-thinking 131072 32768 0.4,4,0,0 7n
alibaba/qwen3.5-flash 1000000 64000 0.1,0.4,0.01,0.125 7n
alibaba/qwen3.5-plus 1000000 64000 0.4,2.5,0.04,0.5 7n
alibaba/qwen3.6-27b 256000 256000 0.6,3.6,0,0 7n
alibaba/qwen3.6-plus 1000000 64000 0.5,3,0.05,0.625 7n
alibaba/qwen3.7-flash 991000 64000 0.03,0.13,0.006,0.038 7n
alibaba/qwen3.7-max 991000 64000 2.5,7.5,0.5,3.125 7m
alibaba/qwen3.7-plus 1000000 64000 0.4,1.6,0.08,0.5 7n
alibaba/qwen3.8-2.4t-a95b 262144 128000 2,6,0.25,0 7n
alibaba/qwen3.8-27b 1000000 131072 0.5,3,0.1,0.625 7n
alibaba/qwen3.8-flash 991000 128000 0.15,0.47,0.016,0.2 7n
alibaba/qwen3.8-max 262144 128000 2,6,0.25,0 7n
alibaba/qwen3.8-max-0902 991000 128000 2,6,0.25,2.5 7n
alibaba/qwen3.8-omni-flash 1000000 131072 0.15,0.47,0.016,0 7n
amazon/nova-2-lite 1000000 1000000 0.3,2.5,0.075,0 7n
amazon/nova-lite 300000 8192 0.06,0.24,0,0 7p
amazon/nova-micro 128000 8192 0.035,0.14,0,0 7o
amazon/nova-pro 300000 8192 0.8,3.2,0,0 7p
anthropic/claude-3-haiku 200000 4096 0.25,1.25,0.03,0.3 7p
anthropic/claude-fable-5 1000000 128000 10,50,1,12.5 7q
anthropic/claude-fable-5.1 1000000 128000 10,50,0.25,12.5 7q
anthropic/claude-haiku-4.5 200000 64000 1,5,0.1,1.25 7n
anthropic/claude-opus-4 200000 8192 15,75,1.5,18.75 7n
anthropic/claude-opus-4.5 200000 64000 5,25,0.5,6.25 7n
anthropic/claude-opus-4.6 1000000 128000 5,25,0.5,6.25 7r
anthropic/claude-opus-4.7 1000000 128000 5,25,0.5,6.25 7s
anthropic/claude-opus-4.8 1000000 128000 5,25,0.5,6.25 7s
anthropic/claude-opus-4.8-fast 1000000 128000 10,50,1,12.5 7s
anthropic/claude-opus-5 1000000 128000 5,25,0.5,6.25 7s
anthropic/claude-opus-5-fast 1000000 128000 10,50,1,12.5 7s
anthropic/claude-opus-5.5 1000000 128000 4,20,0.2,5 7s
anthropic/claude-opus-5.5-fast 1000000 128000 8,40,0.4,10 7s
anthropic/claude-sonnet-4 1000000 8192 3,15,0.3,3.75 7n
anthropic/claude-sonnet-4.5 1000000 64000 3,15,0.3,3.75 7n
anthropic/claude-sonnet-4.6 1000000 128000 3,15,0.3,3.75 7r
anthropic/claude-sonnet-5 1000000 128000 2,10,0.2,2.5 7t
arcee-ai/trinity-large-thinking 262100 80000 0.25,0.9,0,0 7m
bytedance/seed-1.6 256000 32000 0.25,2,0.05,0 7n
bytedance/seed-1.8 256000 64000 0.25,2,0.05,0 7n
bytedance/seed-2.1-turbo 262144 262144 0.5,2.5,0.1,0 7n
cohere/command-a 256000 8000 2.5,10,0,0 7o
deepseek/deepseek-r1 128000 8192 1.35,5.4,0,0 7m
deepseek/deepseek-v3.1 163840 128000 0.25,0.95,0.13,0 7m
deepseek/deepseek-v3.1-terminus 131072 65536 0.27,1,0.135,0 7m
deepseek/deepseek-v3.2 128000 8000 0.62,1.85,0,0 7o
deepseek/deepseek-v3.2-thinking 128000 8000 0.62,1.85,0,0 7o
deepseek/deepseek-v4-flash 1000000 384000 0.13,0.26,0.028,0 7m
deepseek/deepseek-v4-flash-0731 1000000 384000 0.076,0.153,0.014,0 7m
deepseek/deepseek-v4-flash-vision-exp 1048576 1048576 0.22,0.66,0.007,0 7n
deepseek/deepseek-v4-pro 1000000 384000 0.66,1.98,0.022,0 7m
deepseek/deepseek-v4-pro-0813 1000000 384000 0.66,1.98,0.066,0 7m
deepseek/deepseek-v4.1-flash 1048576 32768 0.3,1.2,0.007,0 7n
google/gemini-2.5-flash 1000000 65536 0.3,2.5,0.03,0 7n
google/gemini-2.5-flash-lite 1048576 65536 0.1,0.4,0.01,0 7n
google/gemini-2.5-pro 1048576 65536 1.25,10,0.125,0 7n
google/gemini-3-flash 1000000 65000 0.5,3,0.05,0 7n
google/gemini-3.1-flash-lite 1000000 65000 0.25,1.5,0.03,0 7n
google/gemini-3.1-pro-preview 1000000 64000 2,12,0.2,0 7n
google/gemini-3.5-flash 1000000 64000 1.5,9,0.15,0 7n
google/gemini-3.5-flash-lite 1000000 65000 0.3,2.5,0.03,0 7n
google/gemini-3.6-flash 1000000 64000 0.75,3.75,0.075,0 7n
google/gemini-3.7-flash 1000000 65536 0.75,3.75,0.075,0 7n
google/gemini-3.8-flash 1000000 65536 0.75,3.75,0.075,0 7n
google/gemma-4-26b-a4b-it 262144 131072 0.15,0.6,0.015,0 7n
google/gemma-4-31b-it 262144 131072 0.14,0.4,0,0 7n
inception/mercury-2 128000 128000 0.25,0.75,0.025,0 7m
inception/mercury-2.5 260000 65536 0.04,0.15,0.004,0 7m
inception/mercury-coder-small 32000 16384 0.25,1,0,0 7o
inclusionai/ling-3.0-flash 256000 32000 0.021,0.063,0.0042,0 7m
inclusionai/ling-3.0-flash-fin 256000 32000 - 7m
inclusionai/ling-3.0-flash-fin-free 256000 32000 0,0,0,0 7m
inclusionai/ling-3.0-flash-sante 256000 32000 - 7m
inclusionai/ling-3.0-flash-sante-free 256000 32000 0,0,0,0 7m
inclusionai/ling-3.0-flash-vl 256000 32000 - 7n
inclusionai/ling-3.0-flash-vl-free 256000 32000 0,0,0,0 7n
interfaze/interfaze-beta 1000000 32000 1.5,3.5,0,0 7n
meta/llama-3.1-70b 128000 8192 0.72,0.72,0,0 7o
meta/llama-3.1-8b 128000 8192 0.22,0.22,0,0 7o
meta/llama-3.3-70b 128000 8192 0.72,0.72,0,0 7o
meta/llama-4-maverick 128000 8192 0.24,0.97,0,0 7p
meta/llama-4-scout 128000 8192 0.17,0.66,0,0 7p
meta/muse-glimmer-30b 131072 131072 0.35,1.5,0.04,0 7n
meta/muse-spark-1.1 1048576 1048576 1.25,4.25,0.15,0 7n
meta/muse-spark-1.2 1048576 1048576 1.25,4.25,0.15,0 7n
meta/muse-spark-1.2-contributor 1048576 1048576 0.1,0.2,0.002,0 7n
meta/muse-spark-1.3 1048576 1048576 1.25,4.25,0.15,0 7n
meta/muse-spark-1.3-contributor 1048576 1048576 0.1,0.2,0.002,0 7n
minimax/minimax-m2 205000 205000 0.3,1.2,0.03,0.375 7m
minimax/minimax-m2.1 204800 131072 0.3,1.2,0.03,0.375 7m
minimax/minimax-m2.1-lightning 204800 131072 0.3,2.4,0.03,0.375 7m
minimax/minimax-m2.5 204800 131000 0.3,1.2,0.03,0.375 7m
minimax/minimax-m2.5-highspeed 204800 131000 0.6,2.4,0.03,0.375 7m
minimax/minimax-m2.7 204800 131000 0.3,1.2,0.06,0.375 7m
minimax/minimax-m2.7-highspeed 204800 131100 0.6,2.4,0.06,0.375 7m
minimax/minimax-m3 512000 512000 0.3,1.2,0.06,0 7n
mistral/codestral 128000 4000 0.3,0.9,0.03,0 7o
mistral/ministral-14b 262144 256000 0.2,0.2,0.02,0 7p
mistral/ministral-3b 131072 4000 0.1,0.1,0.01,0 7p
mistral/ministral-8b 262144 4000 0.15,0.15,0.015,0 7p
mistral/mistral-large-3 262144 256000 0.5,1.5,0.05,0 7p
mistral/mistral-medium-3.5 262144 256000 1.5,7.5,0.15,0 7n
mistral/mistral-nemo 60288 16000 0.04,0.17,0,0 7o
mistral/mistral-small 262144 4000 0.15,0.6,0.015,0 7p
mixedbread/toast-1 131000 4000 0.3,0.72,0.036,0 7o
moonshotai/kimi-k2 131072 131072 0.57,2.3,0,0 7o
moonshotai/kimi-k2-thinking 216144 216144 0.47,2,0.141,0 7m
moonshotai/kimi-k2.5 256000 256000 0.6,3,0,0 7n
moonshotai/kimi-k2.6 262000 262000 0.95,4,0.16,0 7n
moonshotai/kimi-k2.7-code 256000 32768 0.95,4,0.16,0 7n
moonshotai/kimi-k2.7-code-highspeed 262144 32768 1.9,8,0.38,0 7n
moonshotai/kimi-k3 1000000 131072 3,15,0.3,0 7n
moonshotai/kimi-k3-fast 1000000 131072 4.5,22.5,0.45,0 7n
nvidia/nemotron-3-nano-30b-a3b 262144 262144 0.05,0.2,0.025,0 7m
nvidia/nemotron-3-super-120b-a12b 256000 32000 0.15,0.65,0,0 7m
nvidia/nemotron-3-ultra-550b-a55b 1000000 65000 0.6,2.4,0.12,0 7m
nvidia/nemotron-3.5-lightning 262144 131072 0.05,0.2,0.01,0 7m
nvidia/nemotron-nano-12b-v2-vl 131072 131072 0.2,0.6,0,0 7n
nvidia/nemotron-nano-9b-v2 131072 131072 0.06,0.23,0,0 7m
openai/gpt-3.5-turbo 16385 4096 0.5,1.5,0,0 7o
openai/gpt-4-turbo 128000 4096 10,30,0,0 7p
openai/gpt-4.1 1047576 32768 2,8,0.5,0 7p
openai/gpt-4.1-fast 1047576 32768 3.5,14,0.875,0 7p
openai/gpt-4.1-mini 1047576 32768 0.4,1.6,0.1,0 7p
openai/gpt-4.1-mini-fast 1047576 32768 0.7,2.8,0.175,0 7p
openai/gpt-4.1-nano 1047576 32768 0.1,0.4,0.025,0 7p
openai/gpt-4.1-nano-fast 1047576 32768 0.2,0.8,0.05,0 7p
openai/gpt-4o 128000 16384 2.5,10,1.25,0 7p
openai/gpt-4o-fast 128000 16384 4.25,17,2.125,0 7p
openai/gpt-4o-mini 128000 16384 0.15,0.6,0.075,0 7p
openai/gpt-4o-mini-fast 128000 16384 0.25,1,0.125,0 7p
openai/gpt-5 400000 128000 1.25,10,0.125,0 7n
openai/gpt-5-codex 400000 128000 1.25,10,0.13,0 7n
openai/gpt-5-fast 400000 128000 2.5,20,0.25,0 7n
openai/gpt-5-mini 400000 128000 0.25,2,0.025,0 7n
openai/gpt-5-mini-fast 400000 128000 0.45,3.6,0.045,0 7n
openai/gpt-5-nano 400000 128000 0.05,0.4,0.005,0 7n
openai/gpt-5-pro 400000 272000 15,120,0,0 7n
openai/gpt-5.1-codex 400000 128000 1.25,10,0.13,0 7n
openai/gpt-5.1-codex-max 400000 128000 1.25,10,0.125,0 7n
openai/gpt-5.1-codex-mini 400000 128000 0.25,2,0.03,0 7n
openai/gpt-5.1-thinking 400000 128000 1.25,10,0.125,0 7n
openai/gpt-5.1-thinking-fast 400000 128000 2.5,20,0.25,0 7n
openai/gpt-5.2 400000 128000 1.75,14,0.175,0 7u
openai/gpt-5.2-codex 400000 128000 1.75,14,0.175,0 7u
openai/gpt-5.2-fast 400000 128000 3.5,28,0.35,0 7u
openai/gpt-5.2-pro 400000 128000 21,168,0,0 7u
openai/gpt-5.3-codex 400000 128000 1.75,14,0.175,0 7u
openai/gpt-5.3-codex-fast 400000 128000 3.5,28,0.35,0 7u
openai/gpt-5.4 1050000 128000 2.5,15,0.25,0 7u
openai/gpt-5.4-fast 1050000 128000 5,30,0.5,0 7u
openai/gpt-5.4-mini 400000 128000 0.75,4.5,0.075,0 7u
openai/gpt-5.4-mini-fast 400000 128000 1.5,9,0.15,0 7u
openai/gpt-5.4-nano 400000 128000 0.2,1.25,0.02,0 7u
openai/gpt-5.4-pro 1050000 128000 30,180,0,0 7u
openai/gpt-5.5 1000000 128000 5,30,0.5,0 7u
openai/gpt-5.5-fast 1000000 128000 12.5,75,1.25,0 7u
openai/gpt-5.5-pro 1000000 128000 30,180,0,0 7v
openai/gpt-5.6-luna 1050000 128000 0.2,1.2,0.02,0.25 7u
openai/gpt-5.6-luna-fast 1050000 128000 0.4,2.4,0.04,0.5 7u
openai/gpt-5.6-sol 1050000 128000 4,20,0.4,5 7u
openai/gpt-5.6-sol-fast 1050000 128000 8,40,0.8,10 7u
openai/gpt-5.6-terra 1050000 128000 2,12,0.2,2.5 7u
openai/gpt-5.6-terra-fast 1050000 128000 4,24,0.4,5 7u
openai/gpt-6-astra 1050000 128000 10,50,1,12.5 7u
openai/gpt-6-astra-fast 1050000 128000 20,100,2,25 7u
openai/gpt-6-luna 1050000 128000 0.1,0.5,0.01,0.125 7u
openai/gpt-6-luna-fast 1050000 128000 0.2,1,0.02,0.25 7u
openai/gpt-6-sol 1050000 128000 2,10,0.2,2.5 7u
openai/gpt-6-sol-fast 1050000 128000 4,20,0.4,5 7u
openai/gpt-oss-120b 131072 131072 0.1,0.5,0,0 7m
openai/gpt-oss-20b 131072 8192 0.03,0.14,0,0 7m
openai/gpt-oss-safeguard-120b 128000 16000 0.15,0.6,0,0 7m
openai/gpt-oss-safeguard-20b 128000 16000 0.07,0.2,0,0 7m
openai/o1 200000 100000 15,60,7.5,0 7n
openai/o3 200000 100000 2,8,0.5,0 7n
openai/o3-fast 200000 100000 3.5,14,0.875,0 7n
openai/o3-mini 200000 100000 1.1,4.4,0.55,0 7m
openai/o3-pro 200000 100000 20,80,0,0 7n
openai/o4-mini 200000 100000 1.1,4.4,0.275,0 7n
openai/o4-mini-fast 200000 100000 2,8,0.5,0 7n
poolside/laguna-s-2.1 1000000 131072 0.1,0.2,0.01,0 7m
poolside/laguna-s-2.1-free 256000 32768 0,0,0,0 7m
quiverai/arrow-2 131072 131072 4,20,0.4,5 7n
quiverai/arrow-2-telos 131072 131072 6,30,0.6,7.5 7n
sakana/fugu-max 1000000 1000000 2,6,0.25,0 7n
sakana/fugu-ultra 1000000 1000000 5,30,0.5,0 7n
sakana/fugu-ultra-v2 1000000 1000000 5,30,0.5,0 7n
sakana/namazu 256000 256000 0.95,4,0.15,0 7n
spacexai/grok-4.1-fast-non-reasoning 1000000 1000000 0.2,0.5,0.05,0 7p
spacexai/grok-4.1-fast-reasoning 1000000 1000000 0.2,0.5,0.05,0 7n
spacexai/grok-4.20-multi-agent 2000000 2000000 1.25,2.5,0.2,0 7n
spacexai/grok-4.20-multi-agent-beta 2000000 2000000 1.25,2.5,0.2,0 7n
spacexai/grok-4.20-non-reasoning 2000000 2000000 1.25,2.5,0.2,0 7p
spacexai/grok-4.20-non-reasoning-beta 2000000 2000000 1.25,2.5,0.2,0 7p
spacexai/grok-4.20-reasoning 2000000 2000000 1.25,2.5,0.2,0 7n
spacexai/grok-4.20-reasoning-beta 2000000 2000000 1.25,2.5,0.2,0 7n
spacexai/grok-4.3 1000000 1000000 1.25,2.5,0.2,0 7n
spacexai/grok-4.5 500000 500000 2,6,0.3,0 7n
spacexai/grok-4.6 500000 500000 2,6,0.5,0 7n
spacexai/grok-4.7 500000 500000 1.2,3.6,0.3,0 7n
spacexai/grok-build-0.1 256000 256000 1,2,0.2,0 7n
stepfun/step-3.5-flash 262114 262114 0.09,0.3,0.02,0 7n
stepfun/step-3.7-flash 256000 256000 0.2,1.15,0.04,0 7n
tencent/hy3 262144 262144 0.14,0.58,0.035,0 7m
tencent/hy4-preview 1024000 64000 0.834,2.501,0.042,0 7m
thinkingmachines/inkling 256000 256000 1,4.05,0.17,0 7n
thinkingmachines/inkling-small 1000000 1000000 0.5,1.2,0.1,0 7n
xiaomi/mimo-v2.5 1050000 131100 0.14,0.28,0.0028,0 7n
xiaomi/mimo-v2.5-pro 1050000 131000 0.435,0.87,0.0036,0 7m
xiaomi/mimo-v2.6-flash 1048576 131072 0.14,0.28,0.0028,0 7n
xiaomi/mimo-v2.6-pro 1048576 131072 0.435,0.87,0.0036,0 7n
xiaomi/mimo-v2.6-pro-ultraspeed 1048576 131072 4.35,8.7,0.036,0 7n
zai/glm-4.5 128000 96000 0.6,2.2,0.11,0 7m
zai/glm-4.5-air 128000 96000 0.2,1.1,0.03,0 7m
zai/glm-4.5v 66000 16000 0.6,1.8,0.11,0 7n
zai/glm-4.6 200000 96000 0.6,2.2,0.11,0 7m
zai/glm-4.7 200000 120000 0.6,2.2,0.12,0 7m
zai/glm-4.7-flash 200000 131000 0.07,0.4,0,0 7m
zai/glm-4.7-flashx 200000 128000 0.06,0.4,0.01,0 7m
zai/glm-5 202800 131100 1,3.2,0,0 7m
zai/glm-5-turbo 202800 131100 1.2,4,0.24,0 7m
zai/glm-5.1 202800 64000 1.4,4.4,0.26,0 7m
zai/glm-5.2 1000000 128000 0.8,2.55,0.16,0 7m
zai/glm-5.2-fast 1000000 128000 2.1,6.6,0.21,0 7m
zai/glm-5.3 1000000 1000000 1.4,4.4,0.14,0 7m
zai/glm-5.3-fast 1048576 262144 2.1,6.6,0.21,0 7m
zai/glm-5.3-flash 1000000 131000 0.15,0.5,0.03,0 7n
zai/glm-5.3-flashx 1000000 131072 0.37,1.25,0.075,0 7n
zai/glm-5v-turbo 200000 128000 1.2,4,0.24,0 7n
`,
  ],
  "xai": [
    "xAI",
    ["openai-responses https://api.x.ai/v1"],
    `
grok-4.3 1000000 30000 1.25,2.5,0.2,0;200000,2.5,5,0.4,0 7w
grok-4.5 500000 500000 2,6,0.3,0;200000,4,12,0.6,0 7x
grok-4.6 500000 500000 2,6,0.5,0;200000,4,12,1,0 7y
grok-4.7 500000 500000 2,6,0.5,0;200000,4,12,1,0 7y
`,
  ],
  "xiaomi": [
    "Xiaomi",
    ["openai-completions https://api.xiaomimimo.com/v1"],
    `
mimo-v2.5 1048576 131072 0.14,0.28,0.0028,0 7z
mimo-v2.5-pro 1048576 131072 0.435,0.87,0.0036,0 80
mimo-v2.5-pro-ultraspeed 1048576 131072 1.305,2.61,0.0108,0 80
mimo-v2.6-flash 1048576 131072 0.14,0.28,0.0028,0 7z
mimo-v2.6-pro 1048576 131072 0.435,0.87,0.0036,0 7z
mimo-v2.6-pro-ultraspeed 1048576 131072 4.35,8.7,0.036,0 7z
`,
  ],
  "xiaomi-token-plan-ams": [
    "Xiaomi Token Plan AMS",
    ["openai-completions https://token-plan-ams.xiaomimimo.com/v1"],
    `
mimo-v2.5 1048576 131072 - 7z
mimo-v2.5-pro 1048576 131072 - 80
mimo-v2.6-flash 1048576 131072 - 7z
mimo-v2.6-pro 1048576 131072 - 7z
`,
  ],
  "xiaomi-token-plan-cn": [
    "Xiaomi Token Plan CN",
    ["openai-completions https://token-plan-cn.xiaomimimo.com/v1"],
    `
mimo-v2.5 1048576 131072 - 7z
mimo-v2.5-pro 1048576 131072 - 80
mimo-v2.6-flash 1048576 131072 - 7z
mimo-v2.6-pro 1048576 131072 - 7z
`,
  ],
  "xiaomi-token-plan-sgp": [
    "Xiaomi Token Plan SGP",
    ["openai-completions https://token-plan-sgp.xiaomimimo.com/v1"],
    `
mimo-v2.5 1048576 131072 - 7z
mimo-v2.5-pro 1048576 131072 - 80
mimo-v2.6-flash 1048576 131072 - 7z
mimo-v2.6-pro 1048576 131072 - 7z
`,
  ],
  "zai": [
    "Z.AI",
    ["openai-completions https://api.z.ai/api/coding/paas/v4"],
    `
glm-4.7 204800 131072 0.6,2.2,0.11,0 81
glm-5-turbo 200000 131072 1.2,4,0.24,0 81
glm-5.2 1000000 131072 1.4,4.4,0.26,0 82
glm-5.2-highspeed 1000000 131072 - 82
glm-5.3 1000000 131072 1.4,4.4,0.26,0 83
glm-5.3-flash 1000000 131072 0.15,0.5,0.03,0 84
glm-5.3-highspeed 1000000 131072 - 83
`,
  ],
  "zai-coding-cn": [
    "Z.AI Coding CN",
    ["openai-completions https://open.bigmodel.cn/api/coding/paas/v4"],
    `
glm-4.6v 128000 32768 0.3,0.9,0,0 85
glm-5.3 1000000 131072 1.4,4.4,0.26,0 83
glm-5.3-flash 1000000 131072 0.15,0.5,0.03,0 84
glm-5.3-highspeed 1000000 131072 - 83
`,
  ],
};

/** Address, images, thinking, levels, differences: each a number; the last two are positions in the lists below. */
export const KINDS: readonly string[] = [
  "0 1 1 0 0",
  "0 1 0 0 0",
  "0 0 0 0 0",
  "0 1 1 1 0",
  "0 1 1 0 1",
  "0 1 1 2 1",
  "0 1 1 3 0",
  "0 0 1 0 1",
  "1 1 1 0 0",
  "1 1 0 0 0",
  "1 0 0 0 0",
  "1 1 1 1 0",
  "1 1 1 0 1",
  "1 1 1 2 1",
  "1 1 1 3 0",
  "0 1 1 4 1",
  "0 1 1 4 0",
  "0 0 0 0 1",
  "0 1 0 0 1",
  "0 0 1 0 0",
  "0 0 0 0 2",
  "0 0 1 5 2",
  "0 1 1 1 3",
  "0 1 1 1 4",
  "0 1 1 0 5",
  "0 1 1 2 6",
  "0 1 1 3 7",
  "0 1 1 3 8",
  "0 1 1 1 9",
  "0 1 1 6 9",
  "0 1 1 3 6",
  "0 1 1 7 10",
  "0 1 0 7 10",
  "0 1 1 8 10",
  "0 1 0 8 10",
  "0 1 1 9 10",
  "0 1 1 1 10",
  "0 1 1 6 10",
  "0 1 1 10 10",
  "0 0 1 11 11",
  "0 0 1 12 11",
  "0 1 1 12 11",
  "0 1 1 13 12",
  "0 0 1 13 12",
  "0 1 1 11 11",
  "0 0 1 14 13",
  "0 1 1 15 11",
  "0 0 1 16 14",
  "0 1 1 17 14",
  "2 1 1 1 15",
  "2 1 1 0 16",
  "2 1 1 2 15",
  "2 1 1 3 17",
  "2 1 1 3 15",
  "1 0 1 18 18",
  "1 1 1 0 19",
  "1 0 0 0 19",
  "1 1 0 0 19",
  "1 0 1 0 19",
  "0 1 1 19 20",
  "0 1 1 16 20",
  "0 1 1 20 20",
  "0 1 1 21 20",
  "0 1 1 6 20",
  "0 1 1 16 1",
  "0 0 1 16 1",
  "0 0 1 18 21",
  "0 1 1 22 22",
  "0 0 0 0 22",
  "0 1 0 0 22",
  "0 1 1 0 22",
  "0 0 1 16 22",
  "0 0 1 0 22",
  "0 1 1 23 22",
  "0 0 1 14 22",
  "0 0 1 15 22",
  "0 1 1 15 22",
  "0 1 1 24 23",
  "0 0 1 18 24",
  "0 0 1 12 25",
  "0 1 1 12 25",
  "0 0 1 14 25",
  "0 0 1 16 25",
  "0 1 1 0 26",
  "0 1 1 20 25",
  "0 0 1 0 26",
  "0 1 1 17 25",
  "0 0 1 25 25",
  "0 1 1 25 25",
  "0 1 1 26 25",
  "1 0 1 14 22",
  "1 0 1 15 22",
  "1 1 1 15 22",
  "1 1 1 15 27",
  "0 1 1 19 0",
  "0 1 1 27 0",
  "0 1 1 16 0",
  "0 1 1 28 0",
  "0 1 1 29 1",
  "0 1 1 17 1",
  "0 0 1 0 28",
  "0 1 1 0 28",
  "0 0 0 0 28",
  "0 1 0 0 28",
  "0 1 1 16 28",
  "0 1 1 17 28",
  "0 0 1 23 28",
  "0 1 1 23 28",
  "0 0 1 30 28",
  "0 0 1 31 28",
  "0 1 1 15 28",
  "0 0 1 32 28",
  "0 0 1 15 28",
  "0 1 1 33 28",
  "0 0 1 16 28",
  "0 0 1 34 28",
  "0 0 1 22 28",
  "0 1 1 15 29",
  "0 1 1 15 30",
  "0 1 1 0 30",
  "0 1 1 35 0",
  "0 1 1 36 0",
  "0 1 1 0 31",
  "0 1 1 7 31",
  "0 1 1 15 32",
  "0 1 0 0 33",
  "0 1 1 0 33",
  "0 0 0 0 33",
  "0 0 1 0 33",
  "0 1 0 7 20",
  "0 1 1 32 20",
  "0 1 1 17 20",
  "0 1 1 30 20",
  "0 1 1 37 20",
  "0 1 0 8 20",
  "0 1 1 30 34",
  "0 1 1 21 34",
  "0 1 1 10 35",
  "0 1 1 6 35",
  "0 1 1 35 1",
  "2 1 1 1 36",
  "2 1 1 0 0",
  "2 1 1 2 30",
  "2 1 1 3 37",
  "2 1 1 3 38",
  "2 1 1 3 30",
  "3 1 1 19 0",
  "3 1 1 16 0",
  "1 0 1 0 39",
  "1 0 1 15 40",
  "1 1 1 15 41",
  "1 0 1 31 40",
  "1 0 1 31 39",
  "1 0 1 15 39",
  "1 1 1 15 39",
  "1 1 1 0 42",
  "1 1 1 0 43",
  "1 1 1 0 39",
  "1 1 1 38 44",
  "1 0 1 0 42",
  "0 1 1 19 45",
  "0 1 1 16 45",
  "0 1 1 20 45",
  "0 1 1 20 46",
  "0 1 1 21 46",
  "0 1 1 21 45",
  "0 1 1 6 46",
  "0 1 1 10 46",
  "0 1 1 16 47",
  "0 1 1 20 47",
  "0 1 1 39 48",
  "0 1 1 35 47",
  "0 0 1 24 23",
  "0 0 1 18 23",
  "0 1 1 15 23",
  "0 0 1 0 39",
  "0 0 1 31 39",
  "0 0 1 15 39",
  "0 1 1 15 39",
  "0 0 1 34 39",
  "0 0 1 22 39",
  "0 1 1 40 43",
  "0 1 1 0 39",
  "0 1 1 38 44",
  "0 1 1 0 49",
  "0 1 1 23 39",
  "1 1 1 6 50",
  "1 1 1 20 47",
  "1 1 1 35 47",
  "1 1 1 6 30",
  "1 1 1 6 51",
  "1 1 1 26 30",
  "1 1 1 10 37",
  "1 1 1 6 52",
  "1 1 1 10 30",
  "0 0 1 7 53",
  "0 1 1 0 53",
  "0 1 0 0 53",
  "0 0 0 0 53",
  "0 1 1 6 54",
  "0 1 1 0 54",
  "0 1 1 26 54",
  "0 1 1 10 54",
  "0 1 1 17 53",
  "0 1 1 41 53",
  "0 0 1 0 53",
  "0 0 1 42 55",
  "0 0 1 12 55",
  "0 1 1 12 55",
  "0 1 1 7 53",
  "0 1 1 16 53",
  "0 1 1 19 53",
  "0 0 1 34 53",
  "0 0 1 16 53",
  "0 1 1 20 53",
  "0 1 1 35 53",
  "0 1 1 36 53",
  "0 1 1 22 53",
  "0 1 1 0 55",
  "0 1 1 12 53",
  "0 1 1 43 53",
  "0 0 1 44 53",
  "0 0 1 43 53",
  "0 0 0 0 56",
  "0 1 0 0 56",
  "0 1 1 19 56",
  "0 1 1 32 56",
  "0 1 1 17 56",
  "0 1 1 16 56",
  "0 1 1 20 56",
  "0 1 1 30 56",
  "0 1 0 4 56",
  "0 1 1 21 56",
  "0 1 1 30 57",
  "0 1 1 21 57",
  "0 1 1 10 57",
  "0 1 1 10 56",
  "0 1 1 6 57",
  "0 1 1 6 56",
  "0 0 1 16 56",
  "0 0 1 7 56",
  "0 1 1 0 56",
  "0 0 1 0 56",
  "0 0 1 32 56",
  "0 1 1 45 53",
  "0 0 1 23 53",
  "0 1 1 25 53",
  "0 1 1 46 53",
  "0 1 1 47 53",
  "0 0 1 41 53",
  "0 0 1 11 53",
  "0 0 1 42 53",
  "0 0 1 15 53",
  "0 1 1 15 53",
  "0 1 1 6 58",
  "0 1 1 0 58",
  "0 1 1 10 58",
  "0 0 1 12 53",
  "0 1 1 6 53",
  "0 1 1 10 53",
  "0 1 1 30 53",
  "0 0 1 0 59",
  "0 0 1 31 60",
  "0 1 1 15 60",
  "0 0 1 48 60",
  "0 0 1 15 60",
  "0 1 1 0 59",
  "0 1 1 23 60",
  "0 0 1 39 33",
  "0 1 1 40 61",
  "0 0 0 0 61",
  "0 0 1 40 61",
  "0 0 1 49 62",
  "0 0 1 16 63",
  "0 0 1 0 64",
  "0 1 1 0 64",
  "0 0 0 0 64",
  "0 1 0 0 64",
  "0 1 1 1 29",
  "0 1 1 2 29",
  "0 1 1 3 65",
  "0 1 1 3 29",
  "0 1 1 4 64",
  "0 1 1 50 64",
  "0 1 1 17 66",
  "0 1 1 16 66",
  "0 1 1 20 66",
  "0 1 1 0 67",
  "0 0 1 0 67",
  "0 0 1 0 68",
  "0 0 1 14 69",
  "0 0 1 15 69",
  "0 1 1 15 69",
  "0 1 1 0 68",
];

/** Thinking levels as the provider calls them; null: not offered. */
export const LEVELS: readonly string[] = [
  "{}",
  "{\"off\":null,\"xhigh\":\"xhigh\",\"max\":\"max\"}",
  "{\"max\":\"max\"}",
  "{\"xhigh\":\"xhigh\",\"max\":\"max\"}",
  "{\"xhigh\":\"xhigh\"}",
  "{\"off\":null,\"minimal\":null,\"low\":null,\"medium\":null,\"high\":\"high\",\"xhigh\":\"xhigh\"}",
  "{\"off\":null,\"minimal\":null,\"low\":\"low\",\"medium\":\"medium\",\"high\":\"high\",\"xhigh\":\"xhigh\",\"max\":\"max\"}",
  "{\"off\":null}",
  "{\"off\":null,\"xhigh\":\"xhigh\"}",
  "{\"off\":null,\"xhigh\":\"xhigh\",\"minimal\":null,\"low\":null}",
  "{\"off\":\"none\",\"minimal\":null,\"low\":\"low\",\"medium\":\"medium\",\"high\":\"high\",\"xhigh\":\"xhigh\",\"max\":\"max\"}",
  "{\"off\":\"none\",\"minimal\":\"minimal\",\"low\":\"low\",\"medium\":\"medium\",\"high\":\"high\",\"xhigh\":\"xhigh\",\"max\":\"max\"}",
  "{\"off\":\"none\",\"minimal\":null,\"low\":\"low\",\"medium\":null,\"high\":\"high\",\"xhigh\":null,\"max\":\"max\"}",
  "{\"off\":\"off\",\"minimal\":null,\"low\":null,\"medium\":null,\"high\":\"high\",\"xhigh\":null,\"max\":null}",
  "{\"off\":\"none\",\"minimal\":null,\"low\":null,\"medium\":null,\"high\":\"high\",\"xhigh\":null,\"max\":\"max\"}",
  "{\"off\":null,\"minimal\":null,\"low\":\"low\",\"medium\":null,\"high\":\"high\",\"xhigh\":null,\"max\":\"max\"}",
  "{\"off\":null,\"minimal\":null,\"low\":\"low\",\"medium\":\"medium\",\"high\":\"high\",\"xhigh\":null,\"max\":null}",
  "{\"off\":\"none\",\"minimal\":null,\"low\":\"low\",\"medium\":\"medium\",\"high\":\"high\",\"xhigh\":null,\"max\":null}",
  "{\"minimal\":null,\"low\":null,\"medium\":null,\"high\":\"high\",\"max\":\"max\"}",
  "{\"off\":null,\"minimal\":\"minimal\",\"low\":\"low\",\"medium\":\"medium\",\"high\":\"high\",\"xhigh\":null,\"max\":null}",
  "{\"off\":null,\"minimal\":null,\"low\":\"low\",\"medium\":\"medium\",\"high\":\"high\",\"xhigh\":\"xhigh\",\"max\":null}",
  "{\"off\":null,\"minimal\":null,\"low\":null,\"medium\":\"medium\",\"high\":\"high\",\"xhigh\":\"xhigh\",\"max\":null}",
  "{\"off\":\"none\",\"minimal\":null,\"low\":null,\"medium\":null,\"high\":\"high\",\"xhigh\":null,\"max\":null}",
  "{\"off\":null,\"minimal\":null,\"low\":\"low\",\"medium\":\"medium\",\"high\":null,\"xhigh\":\"xhigh\",\"max\":null}",
  "{\"minimal\":null,\"low\":\"low\",\"medium\":null,\"high\":\"high\",\"max\":\"max\"}",
  "{\"off\":\"none\",\"minimal\":null,\"low\":\"low\",\"medium\":\"medium\",\"high\":null,\"xhigh\":\"xhigh\",\"max\":null}",
  "{\"off\":\"none\",\"minimal\":null,\"low\":\"low\",\"medium\":\"medium\",\"high\":\"high\",\"xhigh\":null,\"max\":\"max\"}",
  "{\"off\":null,\"minimal\":\"minimal\",\"low\":null,\"medium\":null,\"high\":\"high\",\"xhigh\":null,\"max\":null}",
  "{\"off\":null,\"minimal\":\"MINIMAL\",\"low\":null,\"medium\":null,\"high\":\"HIGH\"}",
  "{\"off\":\"none\",\"minimal\":null,\"low\":null,\"medium\":null,\"high\":\"default\",\"xhigh\":null,\"max\":null}",
  "{\"off\":\"none\",\"minimal\":null,\"low\":\"low\",\"medium\":\"medium\",\"high\":\"high\",\"xhigh\":\"xhigh\",\"max\":null}",
  "{\"off\":null,\"minimal\":null,\"low\":null,\"medium\":null,\"high\":\"high\",\"xhigh\":null,\"max\":\"max\"}",
  "{\"off\":null,\"minimal\":null,\"low\":null,\"medium\":null,\"high\":\"high\",\"xhigh\":null,\"max\":null}",
  "{\"off\":\"none\",\"minimal\":null,\"low\":\"low\",\"medium\":null,\"high\":\"high\",\"xhigh\":\"xhigh\",\"max\":\"max\"}",
  "{\"off\":\"none\",\"minimal\":null,\"low\":\"low\",\"medium\":null,\"high\":\"high\",\"xhigh\":null,\"max\":null}",
  "{\"off\":null,\"minimal\":\"minimal\",\"low\":\"low\",\"medium\":\"medium\",\"high\":\"high\",\"xhigh\":\"xhigh\",\"max\":null}",
  "{\"off\":null,\"minimal\":\"minimal\",\"low\":\"low\",\"medium\":\"medium\",\"high\":\"high\",\"xhigh\":\"xhigh\",\"max\":\"max\"}",
  "{\"off\":null,\"minimal\":null,\"low\":null,\"medium\":\"medium\",\"high\":null,\"xhigh\":\"xhigh\",\"max\":null}",
  "{\"off\":null,\"minimal\":null,\"low\":null,\"medium\":null,\"high\":null,\"xhigh\":null,\"max\":\"max\"}",
  "{\"off\":null,\"minimal\":null,\"low\":null,\"medium\":null}",
  "{\"minimal\":null,\"low\":null,\"medium\":null}",
  "{\"off\":\"none\",\"minimal\":\"minimal\",\"low\":\"low\",\"medium\":\"medium\",\"high\":\"high\",\"xhigh\":null,\"max\":null}",
  "{\"off\":\"none\",\"minimal\":null,\"low\":null,\"medium\":null,\"high\":\"high\",\"xhigh\":\"xhigh\",\"max\":null}",
  "{\"off\":\"none\",\"minimal\":null,\"low\":null,\"medium\":\"medium\",\"high\":\"high\",\"xhigh\":null,\"max\":null}",
  "{\"off\":\"none\",\"minimal\":null,\"low\":\"low\",\"medium\":\"medium\",\"high\":null,\"xhigh\":null,\"max\":null}",
  "{\"off\":\"none\",\"minimal\":null,\"low\":null,\"medium\":\"medium\",\"high\":null,\"xhigh\":\"xhigh\",\"max\":null}",
  "{\"off\":null,\"minimal\":null,\"low\":null,\"medium\":null,\"high\":\"high\",\"xhigh\":\"xhigh\",\"max\":\"max\"}",
  "{\"off\":\"none\",\"minimal\":\"minimal\",\"low\":\"low\",\"medium\":\"medium\",\"high\":\"high\",\"xhigh\":null,\"max\":\"max\"}",
  "{\"minimal\":null,\"low\":null,\"medium\":null,\"high\":\"high\",\"xhigh\":null,\"max\":\"max\"}",
  "{\"minimal\":null,\"low\":null,\"medium\":null,\"high\":\"high\",\"xhigh\":null}",
  "{\"xhigh\":\"xhigh\",\"off\":null,\"minimal\":null,\"low\":null}",
];

/** Differences between servers of the same wire. */
export const COMPAT: readonly string[] = [
  "{}",
  "{\"supportsStrictMode\":true}",
  "{\"maxTokensField\":\"max_tokens\",\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsReasoningEffort\":false,\"supportsStore\":false,\"supportsStrictMode\":true,\"thinkingFormat\":\"ant-ling\"}",
  "{\"forceAdaptiveThinking\":true,\"supportsMidConvoSystemMessages\":true,\"supportsMidConvoToolChanges\":true,\"supportsStrictTools\":true}",
  "{\"forceAdaptiveThinking\":true,\"supportsMidConvoEffort\":true,\"supportsMidConvoSystemMessages\":true,\"supportsMidConvoToolChanges\":true,\"supportsStrictTools\":true}",
  "{\"supportsStrictTools\":true}",
  "{\"forceAdaptiveThinking\":true,\"supportsStrictTools\":true}",
  "{\"forceAdaptiveThinking\":true,\"supportsStrictTools\":true,\"supportsTemperature\":false}",
  "{\"forceAdaptiveThinking\":true,\"supportsMidConvoSystemMessages\":true,\"supportsMidConvoToolChanges\":true,\"supportsStrictTools\":true,\"supportsTemperature\":false}",
  "{\"forceAdaptiveThinking\":true,\"supportsMidConvoEffort\":true,\"supportsMidConvoSystemMessages\":true,\"supportsMidConvoToolChanges\":true,\"supportsStrictTools\":true,\"supportsTemperature\":false}",
  "{\"supportsOpenAIGrammarTools\":true}",
  "{\"maxTokensField\":\"max_tokens\",\"sendSessionAffinityHeaders\":true,\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsReasoningEffort\":true,\"supportsStore\":false,\"supportsStrictMode\":true,\"supportsUsageInStreaming\":true,\"thinkingFormat\":\"openai\"}",
  "{\"chatTemplateArgs\":{\"enable_thinking\":{\"$var\":\"thinking.enabled\"}},\"maxTokensField\":\"max_tokens\",\"sendSessionAffinityHeaders\":true,\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsReasoningEffort\":false,\"supportsStore\":false,\"supportsStrictMode\":true,\"supportsUsageInStreaming\":true,\"thinkingFormat\":\"baseten\"}",
  "{\"chatTemplateArgs\":{\"enable_thinking\":{\"$var\":\"thinking.enabled\"}},\"maxTokensField\":\"max_tokens\",\"sendSessionAffinityHeaders\":true,\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsReasoningEffort\":true,\"supportsStore\":false,\"supportsStrictMode\":true,\"supportsUsageInStreaming\":true,\"thinkingFormat\":\"baseten\"}",
  "{\"supportsDeveloperRole\":false,\"supportsStore\":false}",
  "{\"forceAdaptiveThinking\":true,\"sendSessionAffinityHeaders\":true}",
  "{\"sendSessionAffinityHeaders\":true}",
  "{\"forceAdaptiveThinking\":true,\"sendSessionAffinityHeaders\":true,\"supportsTemperature\":false}",
  "{\"maxTokensField\":\"max_tokens\",\"requiresReasoningContentOnAssistantMessages\":true,\"sendSessionAffinityHeaders\":true,\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsReasoningEffort\":false,\"supportsStore\":false,\"thinkingFormat\":\"deepseek\"}",
  "{\"maxTokensField\":\"max_tokens\",\"sendSessionAffinityHeaders\":true,\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsReasoningEffort\":false,\"supportsStore\":false}",
  "{\"supportsOpenAIGrammarTools\":true,\"supportsStrictMode\":true}",
  "{\"requiresReasoningContentOnAssistantMessages\":true,\"sendSessionAffinityHeaders\":true,\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsStore\":false,\"supportsStrictMode\":true,\"thinkingFormat\":\"deepseek\"}",
  "{\"sendSessionAffinityHeaders\":true,\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsStore\":false,\"supportsStrictMode\":true}",
  "{\"maxTokensField\":\"max_tokens\",\"requiresReasoningContentOnAssistantMessages\":true,\"supportsDeveloperRole\":false,\"supportsStore\":false,\"supportsStrictMode\":true,\"thinkingFormat\":\"deepseek\"}",
  "{\"maxTokensField\":\"max_tokens\",\"requiresReasoningContentOnAssistantMessages\":true,\"supportsDeveloperRole\":false,\"supportsMidConvoSystemMessages\":true,\"supportsStore\":false,\"supportsStrictMode\":true,\"thinkingFormat\":\"deepseek\"}",
  "{\"allowEmptySignature\":true,\"forceAdaptiveThinking\":true,\"sendSessionAffinityHeaders\":true,\"supportsCacheControlOnTools\":false,\"supportsEagerToolInputStreaming\":false,\"supportsLongCacheRetention\":false}",
  "{\"allowEmptySignature\":true,\"sendSessionAffinityHeaders\":true,\"supportsCacheControlOnTools\":false,\"supportsEagerToolInputStreaming\":false,\"supportsLongCacheRetention\":false}",
  "{\"requiresReasoningContentOnAssistantMessages\":true,\"sendSessionAffinityHeaders\":true,\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsMidConvoSystemMessages\":true,\"supportsMidConvoToolAdditions\":true,\"supportsStore\":false,\"supportsStrictMode\":true,\"thinkingFormat\":\"openai\"}",
  "{\"supportsDeveloperRole\":false,\"supportsStrictMode\":true}",
  "{\"allowEmptySignature\":true,\"forceAdaptiveThinking\":true}",
  "{\"forceAdaptiveThinking\":true}",
  "{\"maxTokensField\":\"max_tokens\",\"supportsDeveloperRole\":false,\"supportsMidConvoSystemMessages\":true,\"supportsReasoningEffort\":false,\"supportsStore\":false,\"supportsStrictMode\":false,\"thinkingFormat\":\"deepseek\"}",
  "{\"maxTokensField\":\"max_tokens\",\"requiresReasoningContentOnAssistantMessages\":true,\"supportsDeveloperRole\":false,\"supportsMidConvoSystemMessages\":true,\"supportsMidConvoToolAdditions\":true,\"supportsReasoningEffort\":true,\"supportsStore\":false,\"supportsStrictMode\":false,\"thinkingFormat\":\"openai\"}",
  "{\"maxTokensField\":\"max_tokens\",\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsReasoningEffort\":false,\"supportsStore\":false,\"supportsStrictMode\":false}",
  "{\"supportsAdditionalTools\":true,\"supportsMidConvoSystemMessages\":true,\"supportsOpenAIGrammarTools\":true,\"supportsStrictMode\":true,\"supportsToolSearch\":true}",
  "{\"supportsAdditionalTools\":true,\"supportsExplicitPromptCacheMode\":true,\"supportsMidConvoSystemMessages\":true,\"supportsOpenAIGrammarTools\":true,\"supportsStrictMode\":true,\"supportsToolSearch\":true}",
  "{\"forceAdaptiveThinking\":true,\"supportsMidConvoSystemMessages\":true}",
  "{\"forceAdaptiveThinking\":true,\"supportsTemperature\":false}",
  "{\"forceAdaptiveThinking\":true,\"supportsMidConvoSystemMessages\":true,\"supportsTemperature\":false}",
  "{\"maxTokensField\":\"max_tokens\",\"supportsDeveloperRole\":false,\"supportsStore\":false,\"supportsStrictMode\":true}",
  "{\"maxTokensField\":\"max_tokens\",\"requiresReasoningContentOnAssistantMessages\":true,\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsStore\":false,\"supportsStrictMode\":true}",
  "{\"maxTokensField\":\"max_tokens\",\"requiresReasoningContentOnAssistantMessages\":true,\"supportsDeveloperRole\":false,\"supportsStore\":false,\"supportsStrictMode\":true}",
  "{\"maxTokensField\":\"max_tokens\",\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsStore\":false,\"supportsStrictMode\":true}",
  "{\"maxTokensField\":\"max_tokens\",\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsReasoningEffort\":false,\"supportsStore\":false,\"supportsStrictMode\":true,\"thinkingFormat\":\"deepseek\"}",
  "{\"maxTokensField\":\"max_tokens\",\"supportsDeveloperRole\":false,\"supportsMidConvoSystemMessages\":true,\"supportsMidConvoToolAdditions\":true,\"supportsStore\":false,\"supportsStrictMode\":true}",
  "{\"sessionAffinityFormat\":\"openai-nosession\",\"supportsOpenAIGrammarTools\":true}",
  "{\"sessionAffinityFormat\":\"openai-nosession\",\"supportsAdditionalTools\":true,\"supportsMidConvoSystemMessages\":true,\"supportsOpenAIGrammarTools\":true}",
  "{\"sessionAffinityFormat\":\"openai-nosession\"}",
  "{\"sessionAffinityFormat\":\"openai-nosession\",\"supportsReasoningEffort\":false}",
  "{\"maxTokensField\":\"max_tokens\",\"supportsDeveloperRole\":false,\"supportsStore\":false,\"supportsStrictMode\":true,\"thinkingFormat\":\"qwen\"}",
  "{\"sessionAffinityFormat\":\"openai-nosession\",\"supportsAdditionalTools\":true,\"supportsMidConvoSystemMessages\":true}",
  "{\"forceAdaptiveThinking\":true,\"supportsMidConvoEffort\":true}",
  "{\"forceAdaptiveThinking\":true,\"supportsMidConvoEffort\":true,\"supportsTemperature\":false}",
  "{\"sendSessionAffinityHeaders\":true,\"supportsDeveloperRole\":false,\"supportsStrictMode\":true,\"thinkingFormat\":\"openrouter\"}",
  "{\"cacheControlFormat\":\"anthropic\",\"sendSessionAffinityHeaders\":true,\"supportsStrictMode\":true,\"thinkingFormat\":\"openrouter\"}",
  "{\"requiresReasoningContentOnAssistantMessages\":true,\"sendSessionAffinityHeaders\":true,\"supportsDeveloperRole\":false,\"supportsStrictMode\":true,\"thinkingFormat\":\"openrouter\"}",
  "{\"sendSessionAffinityHeaders\":true,\"supportsStrictMode\":true,\"thinkingFormat\":\"openrouter\"}",
  "{\"sendSessionAffinityHeaders\":true,\"supportsMidConvoSystemMessages\":true,\"supportsStrictMode\":true,\"thinkingFormat\":\"openrouter\"}",
  "{\"cacheControlFormat\":\"anthropic\",\"sendSessionAffinityHeaders\":true,\"supportsDeveloperRole\":false,\"supportsStrictMode\":true,\"thinkingFormat\":\"openrouter\"}",
  "{\"supportsDeveloperRole\":false,\"supportsReasoningEffort\":false,\"supportsStore\":false,\"supportsStrictMode\":true,\"thinkingFormat\":\"qwen\"}",
  "{\"supportsDeveloperRole\":false,\"supportsReasoningEffort\":true,\"supportsStore\":false,\"supportsStrictMode\":true,\"thinkingFormat\":\"qwen\"}",
  "{\"maxTokensField\":\"max_tokens\",\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsReasoningEffort\":false,\"supportsStore\":false,\"supportsStrictMode\":false,\"thinkingFormat\":\"together\"}",
  "{\"maxTokensField\":\"max_tokens\",\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsReasoningEffort\":true,\"supportsStore\":false,\"supportsStrictMode\":false,\"thinkingFormat\":\"together\"}",
  "{\"maxTokensField\":\"max_tokens\",\"supportsDeveloperRole\":false,\"supportsLongCacheRetention\":false,\"supportsReasoningEffort\":true,\"supportsStore\":false,\"supportsStrictMode\":false,\"thinkingFormat\":\"openai\"}",
  "{\"allowEmptySignature\":true}",
  "{\"allowEmptySignature\":true,\"forceAdaptiveThinking\":true,\"supportsTemperature\":false}",
  "{\"supportsLongCacheRetention\":false}",
  "{\"requiresReasoningContentOnAssistantMessages\":true,\"supportsStrictMode\":true,\"thinkingFormat\":\"deepseek\"}",
  "{\"maxTokensField\":\"max_tokens\",\"supportsDeveloperRole\":false,\"supportsReasoningEffort\":false,\"supportsStore\":false,\"supportsStrictMode\":true,\"thinkingFormat\":\"zai\",\"zaiToolStream\":true}",
  "{\"maxTokensField\":\"max_tokens\",\"supportsDeveloperRole\":false,\"supportsReasoningEffort\":true,\"supportsStore\":false,\"supportsStrictMode\":true,\"thinkingFormat\":\"zai\",\"zaiToolStream\":true}",
];
