// Whether the stream and two key lists around it agree. What changes in the store without a message is found by the router's reconciles, until then
// it is credited wrongly.
import { type Check, failed, ok, skipped } from '../finding.js';
import { count, STORE } from '../words.js';

export const drift: Check = {
  code: 'reconcile-drift',
  title: "the store's events and its key list agree",
  run: ({ store }) => {
    if (store === null) return [];
    if (store.drift === null) return [skipped(STORE, store.keysFault ?? 'there is no key list')];
    const { missing, unannounced, judged, unjudged } = store.drift;
    if (unjudged !== null) return [skipped(STORE, unjudged)];
    if (missing + unannounced === 0) return [ok(STORE, `${count(judged, 'key')}, all as the events say`)];
    return [
      failed(
        STORE,
        `of ${count(judged, 'key')}, ${missing} vanished and ${unannounced} appeared without a message`,
        'Old masters do not announce batch removals, quotas, crashes of clients and unmounted segments: update Mooncake (wire generation C), and keep sharedCache.maxEvidenceAge short until then. Reconciles correct it.',
      ),
    ];
  },
};
