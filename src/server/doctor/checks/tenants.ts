// Under which tenants objects are written: only default's are read.
import { type Check, failed, ok, skipped } from '../finding.js';
import { addTallies, listText, STORE, tallyText } from '../words.js';

const DEFAULT = 'default';

export const tenants: Check = {
  code: 'tenants',
  title: "the workers' objects are the default tenant's",
  run: ({ store }) => {
    if (store === null) return [];
    const seen = addTallies(store.masters.map(({ heard }) => heard.tenants));
    const names = Object.keys(seen);
    if (names.length === 0) return [skipped(STORE, 'no event was heard')];
    const others = names.filter((name) => name !== DEFAULT);
    if (names.includes(DEFAULT))
      return [ok(STORE, `${tallyText(seen)}${others.length > 0 ? '; only default is read' : ''}`)];
    return [
      failed(
        STORE,
        `all events are of ${listText(others)}`,
        'Let the workers write as tenant default (mooncake_tenant_id of their connector), or the master run without --enable_multi_tenants.',
      ),
    ];
  },
};
