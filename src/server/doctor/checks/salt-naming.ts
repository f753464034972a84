// Whether salts are tagged. vLLM mixes the salt into hashes as it is; only behind the prefix can it be told from an adapter or an image.
import { CACHE_SALT_PREFIX } from '../../../events/namespace.js';
import { type Check, failed, ok, skipped } from '../finding.js';
import { count } from '../words.js';

export const saltNaming: Check = {
  code: 'salt-naming',
  title: 'salts are tagged',
  run: ({ target, workers }) =>
    workers.map(({ spec, ranks }) => {
      const salts = ranks.reduce((sum, { heard }) => sum + heard.untagged.salts, 0);
      const tagged = ranks.reduce((sum, { heard }) => sum + heard.tagged, 0);
      if (salts + tagged === 0) return skipped(spec.id, 'no salted prompt was heard');
      const seen = `${count(salts, 'prompt')} with a salt that does not begin with ${CACHE_SALT_PREFIX}${tagged > 0 ? `, ${tagged} with one that does` : ''}`;
      if (salts === 0) return ok(spec.id, `${count(tagged, 'prompt')} with a tagged salt`);
      if (target.saltMode === 'raw') return skipped(spec.id, `${seen}; salt.mode is raw, so they get no shared credit`);
      return failed(
        spec.id,
        seen,
        `Send requests with a cache_salt through moonroute, which tags it (salt.mode "prefixed"), or write it as ${CACHE_SALT_PREFIX}NAME.`,
      );
    }),
};
