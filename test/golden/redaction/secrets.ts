import { Chance } from "../../transcript/random.ts";

/** Random secrets in every vendor's format, from a seed: none was ever real, and none is in a file. */

const lower = "abcdefghijklmnopqrstuvwxyz";
const digits = "0123456789";
const alnum = lower + lower.toUpperCase() + digits;
const hex = "0123456789abcdef";
const url = `${alnum}-_`;
const base64 = `${alnum}+/`;

export interface Sample {
  readonly vendor: string;
  /** The text that contains the secret. */
  readonly text: string;
  /** The text that must not remain after redaction. */
  readonly secret: string;
  readonly carrier: string;
}

function some(chance: Chance, from: string, length: number): string {
  const text = Array.from({ length }, () => from[chance.below(from.length)]).join("");
  // A random text without a digit is one in thousands, and no scanner would recognize it.
  return from === digits || length < 12
    ? text
    : `${text.slice(0, 4)}${digits[chance.below(10)]}${text.slice(5)}`;
}

type Make = (of: (from: string, length: number) => string) => string;

/** By vendor. */
export const shapes: Readonly<Record<string, Make>> = {
  Skein: (of) => `skein_${of(url, 43)}`,
  "Skein link": (of) => `skein_code_${of(url, 43)}`,
  Anthropic: (of) => `sk-ant-api03-${of(url, 93)}AA`,
  OpenAI: (of) => `sk-${of(alnum, 20)}T3BlbkFJ${of(alnum, 20)}`,
  "OpenAI project": (of) => `sk-proj-${of(url, 58)}T3BlbkFJ${of(alnum, 58)}`,
  OpenRouter: (of) => `sk-or-v1-${of(hex, 64)}`,
  DeepSeek: (of) => `sk-${of(hex, 32)}`,
  Groq: (of) => `gsk_${of(alnum, 52)}`,
  xAI: (of) => `xai-${of(alnum, 80)}`,
  Perplexity: (of) => `pplx-${of(alnum, 48)}`,
  Replicate: (of) => `r8_${of(alnum, 37)}`,
  "Hugging Face": (of) => `hf_${of(lower + lower.toUpperCase(), 34).replace(/\d/g, "q")}`,
  GitHub: (of) => `ghp_${of(alnum, 36)}`,
  "GitHub OAuth": (of) => `gho_${of(alnum, 36)}`,
  "GitHub app": (of) => `ghs_${of(alnum, 36)}`,
  "GitHub fine-grained": (of) => `github_pat_${of(alnum, 22)}_${of(alnum, 59)}`,
  GitLab: (of) => `glpat-${of(alnum, 20)}`,
  "Slack bot": (of) => `xoxb-${of(digits, 12)}-${of(digits, 12)}-${of(alnum, 24)}`,
  "Slack app": (of) => `xapp-1-A${of(alnum.toUpperCase(), 10)}-${of(digits, 13)}-${of(hex, 64)}`,
  "Google API": (of) => `AIza${of(alnum, 35)}`,
  "Google OAuth secret": (of) => `GOCSPX-${of(alnum, 28)}`,
  "Google OAuth": (of) => `ya29.${of(alnum, 120)}`,
  "AWS access key": (of) => `AKIA${of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16).replace(/[0189]/g, "7")}`,
  Stripe: (of) => `sk_live_${of(alnum, 24)}`,
  "Stripe restricted": (of) => `rk_live_${of(alnum, 40)}`,
  npm: (of) => `npm_${of(alnum, 36)}`,
  PyPI: (of) => `pypi-AgEIcHlwaS5vcmc${of(alnum, 70)}`,
  SendGrid: (of) => `SG.${of(alnum, 22)}.${of(alnum, 43)}`,
  Twilio: (of) => `SK${of(hex, 32)}`,
  DigitalOcean: (of) => `dop_v1_${of(hex, 64)}`,
  Cloudflare: (of) => `cfut_${of(alnum, 40)}${of(hex, 8)}`,
  Databricks: (of) => `dapi${of(hex, 32)}`,
  Discord: (of) => `MT${of(alnum, 24)}.${of(alnum, 6)}.${of(alnum, 38)}`,
  Docker: (of) => `dckr_pat_${of(alnum, 27)}`,
  Linear: (of) => `lin_api_${of(alnum, 40)}`,
  Notion: (of) => `ntn_${of(digits, 11)}${of(alnum, 35)}`,
  Mailgun: (of) => `key-${of(hex, 32)}`,
  Shopify: (of) => `shpat_${of(hex, 32)}`,
  Square: (of) => `sq0atp-${of(alnum, 22)}`,
  Vault: (of) => `hvs.${of(alnum, 95)}`,
  Sentry: (of) => `sntrys_${of(alnum, 120)}`,
  Atlassian: (of) => `ATATT3xFfGF0${of(alnum, 60)}`,
  Heroku: (of) => `HRKU-AA${of(alnum, 58)}`,
  Grafana: (of) => `glsa_${of(alnum, 32)}_${of(hex, 8)}`,
  Figma: (of) => `figd_${of(alnum, 40)}`,
  Tailscale: (of) => `tskey-auth-${of(alnum, 12)}-${of(alnum, 32)}`,
  Vercel: (of) => `vcp_${of(alnum, 56)}`,
  JWT: (of) => `eyJ${of(alnum, 33)}.eyJ${of(alnum, 60)}.${of(alnum, 43)}`,
};

type Carry = (secret: string) => string;

/** The contexts in which a token may occur: its format must be enough. */
const carriers: Readonly<Record<string, Carry>> = {
  env: (secret) => `export MY_SETTING=${secret}`,
  "env, named": (secret) => `SERVICE_API_KEY=${secret}`,
  json: (secret) => JSON.stringify({ id: 7, apiKey: secret, on: true }),
  "json, other name": (secret) => JSON.stringify({ values: ["a", secret] }),
  "json in json": (secret) => JSON.stringify({ body: JSON.stringify({ token: secret }) }),
  yaml: (secret) => `service:\n  token: ${secret}\n  port: 80`,
  header: (secret) => `> Authorization: Bearer ${secret}\r\n> Accept: */*`,
  "own header": (secret) => `X-Api-Key: ${secret}`,
  flag: (secret) => `deploy --region eu --api-key ${secret} --yes`,
  "flag, equals": (secret) => `deploy --token=${secret} --yes`,
  query: (secret) => `GET https://api.host.test/v1/list?limit=5&access_token=${secret}&page=2`,
  prose: (secret) => `Use the key ${secret}, and tell nobody.`,
  "end of a sentence": (secret) => `My key is ${secret}.`,
  chinese: (secret) => `请使用密钥${secret}，不要告诉别人。`,
  code: (secret) => `const client = new Client("${secret}"); // works`,
  python: (secret) => `client = Client(api_key='${secret}')`,
  markdown: (secret) => `- **Key**: \`${secret}\`\n- Port: 80`,
  table: (secret) => `| key | ${secret} | today |`,
  log: (secret) => `2026-11-15T20:00:00Z WARN refused key=${secret} status=401`,
  lines: (secret) => `first\n${secret}\nlast`,
};

/** Secrets without a distinctive format: their name or position identifies them. */
const named: Readonly<Record<string, { make: Make; carriers: Readonly<Record<string, Carry>> }>> = {
  "AWS secret key": {
    make: (of) => of(base64, 40),
    carriers: {
      env: (secret) => `AWS_SECRET_ACCESS_KEY=${secret}`,
      ini: (secret) => `[default]\naws_secret_access_key = ${secret}`,
      json: (secret) => JSON.stringify({ SecretAccessKey: secret }),
    },
  },
  "Azure storage key": {
    make: (of) => `${of(base64, 86)}==`,
    carriers: {
      connection: (secret) =>
        `DefaultEndpointsProtocol=https;AccountName=a;AccountKey=${secret};EndpointSuffix=x`,
      json: (secret) => JSON.stringify({ accountKey: secret }),
    },
  },
  "Mistral, and others without a shape": {
    make: (of) => of(alnum, 32),
    carriers: {
      env: (secret) => `MISTRAL_API_KEY=${secret}`,
      "quoted env": (secret) => `export MISTRAL_API_KEY="${secret}"`,
      json: (secret) => JSON.stringify({ clientSecret: secret }),
      yaml: (secret) => `mistral:\n  api_key: ${secret}`,
      flag: (secret) => `run --auth-token ${secret}`,
      "flag in a list": (secret) => JSON.stringify(["run", "--api-key", secret]),
      header: (secret) => `Ocp-Apim-Subscription-Key: ${secret}`,
      bearer: (secret) => `curl -H "Authorization: Bearer ${secret}" https://host.test`,
      ruby: (secret) => `config = { :access_token => "${secret}" }`,
      go: (secret) => `apiKey := "${secret}"`,
      index: (secret) => `os.environ["SOME_TOKEN"] = "${secret}"`,
    },
  },
  "UUID as a key": {
    make: (of) => [8, 4, 4, 4, 12].map((length) => of(hex, length)).join("-"),
    carriers: {
      env: (secret) => `HEROKU_API_KEY=${secret}`,
      json: (secret) => JSON.stringify({ "api-key": secret }),
    },
  },
  password: {
    make: (of) => `${of(alnum, 7)}${of(digits, 2)}!`,
    carriers: {
      env: (secret) => `DB_PASSWORD=${secret}`,
      json: (secret) => JSON.stringify({ user: "ann", password: secret }),
      yaml: (secret) => `database:\n  password: ${secret}`,
      flag: (secret) => `mysql --user root --password=${secret} db`,
      address: (secret) => `postgres://ann:${secret}@db.host.test:5432/app`,
      web: (secret) => `https://ann:${secret.replace("!", "x")}@host.test/path`,
      connection: (secret) => `Server=db;Database=app;User Id=ann;Password=${secret};`,
    },
  },
  "basic auth": {
    make: (of) => btoa(`ann:${of(alnum, 12)}`),
    carriers: {
      header: (secret) => `Authorization: Basic ${secret}`,
      bare: (secret) => `sent Basic ${secret} and got 401`,
    },
  },
  cookie: {
    make: (of) => of(alnum, 32),
    carriers: {
      cookie: (secret) => `Cookie: theme=dark; sid=${secret}; lang=en`,
      "set-cookie": (secret) => `set-cookie: sid=${secret}; Path=/; HttpOnly`,
      json: (secret) => JSON.stringify({ headers: { cookie: `sid=${secret}` } }),
    },
  },
  Telegram: {
    make: (of) => `AA${of(alnum, 33)}`,
    carriers: {
      env: (secret) => `BOT=123456789:${secret}`,
      address: (secret) => `https://api.telegram.org/bot123456789:${secret}/getMe`,
    },
  },
  "Slack webhook": {
    make: (of) => `T${of(alnum.toUpperCase(), 10)}/B${of(alnum.toUpperCase(), 10)}/${of(alnum, 24)}`,
    carriers: { address: (secret) => `https://hooks.slack.com/services/${secret}` },
  },
  "private key": {
    make: (of) => Array.from({ length: 12 }, () => of(base64, 64)).join("\n"),
    carriers: {
      file: (secret) => `${pem("BEGIN RSA")}\n${secret}\n${pem("END RSA")}\n`,
      json: (secret) => JSON.stringify({ key: `${pem("BEGIN")}\n${secret}\n${pem("END")}\n` }),
      "cut off": (secret) => `cat id_rsa\n${pem("BEGIN OPENSSH")}\n${secret}`,
    },
  },
};

const pem = (what: string) => `-----${what} PRIVATE KEY-----`;

/** This many of each format in each context. */
export function secretSamples(seed: number, times: number): Sample[] {
  const chance = new Chance(seed);
  const samples: Sample[] = [];
  const add = (vendor: string, make: Make, of: Readonly<Record<string, Carry>>) => {
    for (const [carrier, carry] of Object.entries(of))
      for (let time = 0; time < times; time++) {
        const secret = make((from, length) => some(chance, from, length));
        samples.push({ vendor, carrier, text: carry(secret), secret });
      }
  };
  for (const [vendor, make] of Object.entries(shapes)) add(vendor, make, carriers);
  for (const [vendor, { make, carriers: own }] of Object.entries(named)) add(vendor, make, own);
  return samples;
}

/** Whether more than the ends of a secret remain. */
export function isLeaked(redacted: string, { secret }: Pick<Sample, "secret">): boolean {
  const inner = secret.replace("!", "x").length < 18 ? secret : secret.slice(6, -4);
  return redacted.includes(inner.split("\n")[0] ?? inner);
}
