import { Chance } from "../../transcript/random.ts";

/** Random lines without a secret, from a seed: each must stay unchanged. */

type Words = readonly [string, ...string[]];
const words = (text: string) => text.split(" ") as unknown as Words;

const nouns = words(
  "key token secret password session model agent user message entry header cookie request bearer lock",
);
const verbs = words("opens keeps finds loses writes reads needs holds hides returns refuses explains");
const adjectives = words(
  "new old long basic secret public private simple useful quiet hidden required optional",
);
const names = words(
  "token key secret password apiKey accessToken sessionKey cacheKey pageToken maxTokens authorization",
);
const chinese = words(
  "密码 令牌 会话 用户 模型 我们 需要 打开 保存 一个 新的 密钥 请求 成功 的 是 在 不能 消息 历史",
);
const hex = "0123456789abcdef";
const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

class Writer {
  readonly chance: Chance;
  constructor(seed: number) {
    this.chance = new Chance(seed);
  }
  of(from: string, length: number): string {
    return Array.from({ length }, () => from[this.chance.below(from.length)]).join("");
  }
  one(from: Words): string {
    return this.chance.pick(from);
  }
  uuid(): string {
    return [8, 4, 4, 4, 12].map((length) => this.of(hex, length)).join("-");
  }
  sentence(): string {
    const { one } = this;
    return `The ${this.one(adjectives)} ${one.call(this, nouns)} ${this.one(verbs)} a ${this.one(nouns)}`;
  }
}

type Line = (by: Writer) => string;

const prose: readonly [Line, ...Line[]] = [
  (by) => `${by.sentence()}, and ${by.sentence().toLowerCase()}.`,
  (by) => `${by.one(nouns)}: ${by.one(adjectives)}`,
  (by) => `${by.one(nouns)}: ${by.chance.below(100)}`,
  () => "key: value",
  () => "token: 5",
  () => "password: required",
  () => "The secret of success is a good password: nobody knows it.",
  (by) => `Password: must have at least ${by.chance.between(8, 20)} characters, one of them a digit.`,
  (by) => `Basic authentication and bearer tokens: ${by.sentence()}.`,
  (by) => `Set the environment variable OPENAI_API_KEY (or pass --api-key <key>), then ${by.one(verbs)}.`,
  (by) => `- **${by.one(nouns)}**: ${by.sentence()}`,
  (by) => Array.from({ length: by.chance.between(5, 20) }, () => by.one(chinese)).join(""),
  (by) => `${by.one(chinese)}：${by.one(chinese)}，token：${by.chance.below(1000)}，密码: 必填`,
  (by) =>
    `See https://host.test/docs/${by.one(nouns)}-${by.one(verbs)}?page=${by.chance.below(9)}#token for more.`,
  (by) => `Write to ann@host.test or git@host.test:${by.one(nouns)}/${by.one(nouns)}.git.`,
  (by) =>
    `About ${by.chance.below(90)} % of tokens: ${by.chance.below(90000)} input, ${by.chance.below(9000)} output.`,
];

const code: readonly [Line, ...Line[]] = [
  (by) => `const ${by.one(names)} = await get${by.one(nouns)}(${by.one(names)});`,
  (by) => `  ${by.one(names)}: string;`,
  (by) => `  ${by.one(names)}?: ${by.one(adjectives)} | null,`,
  (by) => `if (${by.one(names)} === undefined) throw new Error("no ${by.one(nouns)}");`,
  (by) => `apiKey: process.env.SERVICE_${by.one(nouns).toUpperCase()}_KEY,`,
  (by) => `password = config.get("${by.one(nouns)}")`,
  (by) => `self.token = token or os.environ.get("API_TOKEN_${by.chance.below(9)}")`,
  (by) => `API_KEY=\${SERVICE_API_KEY} npm run ${by.one(verbs)}`,
  () => "export TOKEN=$OTHER_TOKEN",
  () => `password: \${DB_PASSWORD}`,
  () => "curl -H 'Authorization: Bearer $TOKEN' https://host.test/v1",
  () => `postgres://user:\${PASSWORD}@db.host.test/app`,
  (by) => `{"type":"string","name":"${by.one(names)}","required":true,"maxTokens":${by.chance.below(9999)}}`,
  (by) => `{"password":"required","token":"missing","count":${by.chance.below(99)}}`,
  (by) => `import { ${by.one(names)} } from "./${by.one(nouns)}-${by.one(nouns)}.ts";`,
  (by) => `std::map<${by.one(nouns)}, std::string> ${by.one(names)}; // ${by.sentence()}`,
  (by) => `for (let token = 0; token < ${by.chance.below(99)}; token++) key += token;`,
  (by) => `.sk-${by.one(nouns)}-${by.one(verbs)}-button { color: #${by.of(hex, 6)}; }`,
  (by) => `"${by.one(nouns)}-${by.one(nouns)}": "^${by.chance.below(9)}.${by.chance.below(20)}.0",`,
  (by) => `"integrity": "sha512-${by.of(base64, 86)}==",`,
  (by) => `npm_config_registry_${by.one(nouns)}=yes npm_lifecycle_event=${by.one(verbs)}`,
  (by) => `git diff ${by.of(hex, 7)}..${by.of(hex, 7)} -- src/${by.one(nouns)}.ts`,
  (by) => `<img src="data:image/png;base64,iVBORw0KGgo${by.of(base64, 400)}=">`,
  (by) => `{"type":"image","data":"/9j/4AAQSkZJRgABAQ${by.of(base64, 600)}","mimeType":"image/jpeg"}`,
];

const logs: readonly [Line, ...Line[]] = [
  (by) => `2026-11-15T20:${by.chance.between(10, 59)}:00.000Z INFO session agent:main:main ${by.one(verbs)}`,
  (by) => `sessionKey: agent:main:subagent:${by.uuid()}`,
  (by) => `session_key=agent:${by.one(nouns)}:telegram:direct:${by.chance.below(1e9)} status=ok`,
  (by) =>
    `{"sessionKey":"agent:main:cron:${by.uuid()}","sessionId":"${by.uuid()}","totalTokens":${by.chance.below(1e6)}}`,
  (by) => `key agent:${by.one(nouns)}:discord:group:${by.chance.below(1e9)}:thread:${by.chance.below(1e9)}`,
  (by) => `token=agent:main:acp:${by.uuid()}`,
  (by) => `request ${by.uuid()} took ${by.chance.below(900)} ms, status: ${by.chance.between(200, 504)}`,
  (by) => `commit ${by.of(hex, 40)}`,
  (by) => `sha256:${by.of(hex, 64)}  ${by.one(nouns)}.tar.gz`,
  (by) => `${by.of(hex, 64)}  dist/${by.one(nouns)}.js`,
  (by) => `md5 ${by.of(hex, 32)} etag="${by.of(hex, 32)}" cacheKey: ${by.of(hex, 40)}`,
  (by) => `nextPageToken: ${by.of(hex, 20)} cursor=${by.of(base64, 24)}`,
  (by) => `trace_id=${by.of(hex, 32)} span_id=${by.of(hex, 16)} token=none`,
  (by) => `user@host:~/${by.one(nouns)}$ ls -la --sort=time /var/lib/${by.one(nouns)}`,
  (by) =>
    `call toolu_01${by.of("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 22)} of ${by.one(verbs)}`,
  (by) =>
    `192.168.${by.chance.below(255)}.${by.chance.below(255)}:8080 - - "GET /${by.one(nouns)} HTTP/1.1" 200 ${by.chance.below(9999)}`,
  (by) =>
    `----- ${by.one(nouns)} ----- -----BEGIN CERTIFICATE----- ${by.of(base64, 64)} -----END CERTIFICATE-----`,
  (by) =>
    `inputTokens: ${by.chance.below(1e5)}, outputTokens: ${by.chance.below(1e4)}, max_tokens=${by.chance.below(1e5)}`,
];

export const ordinaryKinds = { prose, code, logs } as const;

/** This many lines, of all kinds in turn. */
export function ordinaryLines(seed: number, count: number): string[] {
  const by = new Writer(seed);
  const kinds = Object.values(ordinaryKinds);
  return Array.from({ length: count }, (_, index) =>
    by.chance.pick(kinds[index % kinds.length] ?? prose)(by),
  );
}
