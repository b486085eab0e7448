import { hasRandomPart } from "./named-secrets.ts";
import type { CharacterSet } from "./secret-matches.ts";

/**
 * Recognizes a token by its prefix and the characters after it. A run longer than `most` is not treated as a token.
 * This limits how much text a stream must hold back.
 */
export interface TokenRule {
  readonly name: string;
  readonly prefixes: readonly string[];
  readonly of: CharacterSet;
  readonly least: number;
  readonly most: number;
  /** Checks the text after the prefix, in linear time. */
  readonly test?: (rest: string) => boolean;
  /** `true` if the prefix is not part of the secret, such as a URL or the word Bearer. */
  readonly keepsPrefix?: true;
}

type Options = Pick<TokenRule, "test" | "keepsPrefix">;

/** `prefixes` is a list or a space-separated string. `size` is exact, or a minimum and a maximum. */
function rule(
  name: string,
  prefixes: string | readonly string[],
  of: CharacterSet,
  size: number | readonly [number, number],
  options: Options = {},
): TokenRule {
  const [least, most] = typeof size === "number" ? [size, size] : size;
  const begins = typeof prefixes === "string" ? prefixes.split(" ") : prefixes;
  return { name, prefixes: begins, of, least, most, ...options };
}

const random = (least: number): Options => ({ test: (rest) => hasRandomPart(rest, least) });
const like = (pattern: RegExp): Options => ({ test: (rest) => pattern.test(rest) });
const address: Options = { keepsPrefix: true };

const models = [
  rule("Anthropic", "sk-ant-", "url", [20, 512]),
  rule("OpenRouter", "sk-or-", "url", [20, 512]),
  rule("OpenAI and similar", "sk-", "url", [16, 512], random(16)),
  rule("ElevenLabs", "sk_", "hex", [32, 64]),
  rule("Groq", "gsk_", "alnum", [20, 128]),
  rule("xAI", "xai-", "alnum", [20, 128]),
  rule("Perplexity", "pplx-", "alnum", [20, 128]),
  rule("Replicate", "r8_", "alnum", [30, 64]),
  rule("Hugging Face", "hf_ api_org_", "alnum", [30, 64]),
  rule("Cerebras", "csk-", "alnum", [20, 128]),
  rule("Together", "tgp_v1_", "url", [20, 128]),
  rule("LangSmith", "lsv2_pt_ lsv2_sk_", "word", [32, 128]),
  rule("Tavily", "tvly-", "url", [20, 128], random(12)),
];

const forges = [
  rule("GitHub", "ghp_ gho_ ghu_ ghs_ ghr_", "alnum", [20, 255]),
  rule("GitHub app", "ghs_", "dotted", [60, 8192], like(/^[0-9]{1,20}_[\w-]+\.[\w-]+\.[\w-]+$/)),
  rule("GitHub, fine-grained", "github_pat_", "word", [20, 255]),
  rule(
    "GitLab",
    "glpat- gldt- glptt- glrt- glcbt- glft- glsoat- glimt- glagent- gloas- glffct-",
    "dotted",
    [20, 300],
  ),
  rule("npm", "npm_", "alnum", [36, 64]),
  rule("PyPI", "pypi-", "url", [50, 512], random(16)),
  rule("RubyGems", "rubygems_", "hex", 48),
  rule("Docker", "dckr_pat_ dckr_oat_", "url", [20, 64]),
  rule("Atlassian", "ATATT3 ATCTT3 ATBB", "bearer", [28, 512]),
  rule("Linear", "lin_api_ lin_oauth_", "word", [32, 128]),
  rule("Figma", "figd_ figo_", "url", [32, 200]),
  rule("Postman", "PMAK-", "url", [50, 80]),
  rule("Pulumi", "pul-", "hex", 40),
  rule("Buildkite", "bkua_", "hex", 40),
  rule("Vercel", "vcp_ vci_ vca_ vcr_ vck_", "alnum", [20, 60]),
  rule("Terraform", "at.", "dotted", [60, 120], random(32)),
  rule("Doppler", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", "dotted", [30, 80]),
];

const clouds = [
  rule("AWS access key", "AKIA ASIA AGPA AIDA AROA AIPA ANPA ANVA ABIA ACCA", "upper", 16),
  rule("Google API", "AIza", "url", [30, 60]),
  rule("Google OAuth secret", "GOCSPX-", "url", [20, 60]),
  rule("Google OAuth", "ya29.", "dotted", [20, 2048]),
  rule("Google refresh", "1//0", "url", [30, 512]),
  rule("DigitalOcean", "dop_v1_ doo_v1_ dor_v1_", "hex", 64),
  rule("Cloudflare", "cfk_ cfut_ cfat_", "alnum", [40, 64]),
  rule("Cloudflare origin", "v1.0-", "url", [120, 240], like(/^[0-9a-f]{20,}-[0-9a-f]{100,}$/)),
  rule("Databricks", "dapi", "url", [32, 34], like(/^[0-9a-fA-F]{32}(?:-[0-9])?$/)),
  rule("Heroku", "HRKU-", "url", [30, 100]),
  rule("Vault", "hvs. hvb. hvr.", "url", [24, 400]),
  rule("Vault, old", "s.", "alnum", 24, { test: (rest) => /[0-9]/.test(rest) && /[A-Z]/.test(rest) }),
  rule("Fly", "fo1_ fm1_ fm1r_ fm2_", "base64", [40, 4096]),
  rule("PlanetScale", "pscale_tkn_ pscale_oauth_ pscale_pw_", "dotted", [32, 128]),
  rule("Supabase", "sbp_ sb_secret_", "word", [20, 128], random(16)),
  rule("Tailscale", "tskey-", "url", [24, 128], random(8)),
  rule("1Password", "ops_eyJ", "url", [50, 4096]),
  rule("age", "AGE-SECRET-KEY-1", "upper", 58),
];

const services = [
  rule(
    "Slack",
    "xoxb- xoxp- xoxa- xoxo- xoxr- xoxs- xoxe- xoxc- xoxd- xoxe.xoxp- xapp-",
    "bearer",
    [10, 512],
    like(/[0-9]/),
  ),
  rule("Slack webhook", "hooks.slack.com/services/ hooks.slack.com/workflows/", "path", [20, 200], address),
  rule(
    "Discord webhook",
    "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
    "path",
    [60, 200],
    address,
  ),
  rule("Discord bot", "M N O", "dotted", [50, 90], like(/^[\w-]{22,28}\.[\w-]{6}\.[\w-]{27,}$/)),
  rule("Stripe", "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_", "alnum", [16, 255]),
  rule("Webhook secret", "whsec_", "base64", [24, 128]),
  rule("SendGrid", "SG.", "dotted", [30, 200], like(/^[\w-]{16,}\.[\w-]{12,}$/)),
  rule("Twilio", "SK", "hex", 32),
  rule("Mailgun", "key-", "hex", 32),
  rule("Mailchimp", "mailchimp-", "url", [32, 60]),
  rule("Brevo", "xkeysib- xsmtpsib-", "url", [64, 128]),
  rule("Resend", "re_", "word", [20, 64], random(16)),
  rule("Shopify", "shpat_ shpca_ shppa_ shpss_", "alnum", [32, 64]),
  rule("Square", "sq0atp- sq0csp- sq0idp-", "url", [22, 64]),
  rule("Square", "EAAA", "url", [56, 80], {
    test: (rest) => hasRandomPart(rest, 12) && !rest.includes("AAAA"),
  }),
  rule("Notion", "ntn_", "alnum", [40, 64]),
  rule("Notion, old", "secret_", "alnum", 43),
  rule("Sentry", "sntrys_ sntryu_", "bearer", [40, 512]),
  rule("Grafana", "glsa_ glc_ eyJrIjoi", "word", [32, 400]),
  rule("Grafana cloud", "glc_", "base64", [32, 400]),
  rule("New Relic", "NRAK- NRJS- NRII-", "url", [19, 64]),
  rule("Dynatrace", "dt0c01.", "dotted", [60, 120]),
  rule("Airtable", "pat", "dotted", [70, 90], like(/^[A-Za-z0-9]{14}\.[0-9a-f]{64}$/)),
  rule("Contentful", "CFPAT-", "url", [40, 64]),
  rule("Typeform", "tfp_", "dotted", [40, 80]),
  rule("EasyPost", "EZAK EZTK", "alnum", 54),
];

const own = [rule("Skein", "skein_ skein_code_", "url", 43)];

const carriers = [
  rule(
    "JWT",
    "eyJ",
    "bearer",
    [30, 8192],
    like(/^[\w-]{5,}\.eyJ[\w-]{5,}\.[\w+/=-]*$|^[\w-]{8,}(?:\.[\w-]*){4}$/),
  ),
  rule("Bearer", ["Bearer ", "bearer ", "BEARER "], "bearer", [16, 8192], {
    keepsPrefix: true,
    test: (rest) => hasRandomPart(rest, 8) || (/[0-9]/.test(rest) && /[~+/]/.test(rest)),
  }),
  rule("Basic", ["Basic ", "basic "], "base64", [8, 1024], { keepsPrefix: true, test: isUserAndPassword }),
];

/** Whether the text is `user:password` in base64. */
function isUserAndPassword(text: string): boolean {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return false;
  return /^[\x20-\x39\x3b-\x7e]*:[\x20-\x7e]*$/.test(atob(text));
}

/** The order does not matter, because the longest match wins. */
export const tokenRules: readonly TokenRule[] = [
  ...own,
  ...models,
  ...forges,
  ...clouds,
  ...services,
  ...carriers,
];
