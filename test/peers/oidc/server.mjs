// The authorization server of the tests: oidc-provider, configured as a strict one. Everybody who comes is signed in as
// "person" and consents to everything. Settings come as JSON in the first argument; the issuer is printed as one line of
// JSON. It ends with its standard input.
//
// Beside OAuth it answers, for the tests alone:
//   GET  /test/seen            what was asked of it: {"<grant type>": {"granted": n, "refused": n}, "registered": n, …}
//   POST /test/check           token=…: whether an access token is good, for which resource and scopes
//   POST /test/life?seconds=N  is the life of access tokens from now on
//   POST /test/token?status=N  lets the token endpoint answer N from now on, 0 for itself again
import { createServer } from 'node:http';
import Provider, { errors } from 'oidc-provider';

const settings = { accessTTL: 3600, scopes: 'mcp:read mcp:write', ...JSON.parse(process.argv[2] ?? '{}') };
const seen = { registered: 0, signedIn: 0, revoked: 0, unavailable: 0 };
let status = 0;

const grants = (type) => (seen[type] ??= { granted: 0, refused: 0 });

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: settings.clients ?? [],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async (ctx, client) => client.grantTypeAllowed('refresh_token'),
    clientBasedCORS: () => false,
    scopes: ['openid', 'offline_access', ...settings.scopes.split(' ')],
    findAccount: async (ctx, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    cookies: { keys: ['a key of the tests'] },
    ttl: {
      AccessToken: () => settings.accessTTL, ClientCredentials: () => settings.accessTTL,
      RefreshToken: 86400, Grant: 86400, Interaction: 600, Session: 600, IdToken: 600,
    },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: async () => undefined,
        useGrantedResource: async () => true,
        getResourceServerInfo: async (ctx, resource) => ({
          scope: settings.scopes, audience: resource, accessTokenTTL: settings.accessTTL, accessTokenFormat: 'opaque',
        }),
      },
    },
  });
  provider.on('grant.success', (ctx) => { grants(ctx.oidc.params.grant_type).granted++; });
  provider.on('grant.error', (ctx) => { grants(ctx.oidc?.params?.grant_type ?? 'unknown').refused++; });
  provider.on('registration_create.success', () => { seen.registered++; });
  provider.on('revocation.success', () => { seen.revoked++; });

  provider.use(async (ctx, next) => {
    const [, first, second] = ctx.path.split('/');
    if (first === 'interaction') return interact(provider, ctx);
    if (first === 'test') return test(provider, ctx, second);
    if (ctx.path === '/token' && status) {
      seen.unavailable++;
      ctx.status = status;
      ctx.body = 'not now';
      return undefined;
    }
    return next();
  });
  server.on('request', provider.callback());
  console.log(JSON.stringify({ issuer }));
});

async function interact(provider, ctx) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(ctx.req, ctx.res);
  ctx.respond = false;
  if (prompt.name === 'login') {
    return provider.interactionFinished(ctx.req, ctx.res, { login: { accountId: 'person' } });
  }
  const grant = grantId ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope, missingResourceScopes } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  seen.signedIn++;
  return provider.interactionFinished(ctx.req, ctx.res, { consent: { grantId: await grant.save() } }, {
    mergeWithLastSubmission: true,
  });
}

async function test(provider, ctx, what) {
  switch (what) {
    case 'seen':
      ctx.body = seen;
      return;
    case 'life':
      settings.accessTTL = Number(ctx.query.seconds);
      ctx.body = {};
      return;
    case 'token':
      status = Number(ctx.query.status);
      ctx.body = {};
      return;
    case 'check': {
      const chunks = [];
      for await (const chunk of ctx.req) chunks.push(chunk);
      const found = await provider.AccessToken.find(new URLSearchParams(Buffer.concat(chunks).toString()).get('token'))
        ?? await provider.ClientCredentials.find(new URLSearchParams(Buffer.concat(chunks).toString()).get('token'));
      ctx.body = found?.isValid
        ? { active: true, audience: found.aud, scope: found.scope, client: found.clientId, expires: found.exp }
        : { active: false };
      return;
    }
    default:
      throw new errors.InvalidRequest('no such test');
  }
}

process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
