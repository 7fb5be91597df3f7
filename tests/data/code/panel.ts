import { Component, Input } from './framework';

export interface Row {
  id: number;
  label: string;
}

export type Rows = readonly Row[];

@Component({
  selector: 'app-panel',
  template: '<ul></ul>',
})
export class Panel {
  @Input() rows: Rows = [];

  @Input()
  title = '面板';

  get count(): number {
    return this.rows.length;
  }
}

export async function load(url: string): Promise<Rows> {
  const answer = await fetch(url);
  return answer.json();
}
