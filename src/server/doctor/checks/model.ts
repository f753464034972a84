// Whether all workers serve the one model that is configured.
import { type Check, failed, ok, skipped } from '../finding.js';
import { listText } from '../words.js';

export const model: Check = {
  code: 'model',
  title: 'the workers serve the configured model',
  run: ({ target, workers }) => {
    const first = workers.find(({ models }) => models !== null)?.models?.base[0];
    const wanted = target.model ?? first ?? null;
    return workers.map(({ spec, models }) => {
      if (models === null || wanted === null) return skipped(spec.id, 'its /v1/models was not to be had');
      if (models.base.includes(wanted)) return ok(spec.id, `lists ${wanted}`);
      const seen = `/v1/models lists ${listText(models.base) || 'nothing'}, not ${wanted}`;
      const source = target.model === null ? `the first worker's model` : 'model in the configuration';
      return failed(
        spec.id,
        seen,
        `One server serves one model (${source} is ${wanted}): correct the name (vLLM's --served-model-name), or leave this worker to another server.`,
      );
    });
  },
};
