# SPDX-License-Identifier: BSD-3-Clause
# "make install" and "make deb"; part of the Makefile.
#
# Below DESTDIR: programs, manual pages, documents, samples and completions go to PREFIX; the
# configuration and the AppArmor profile to SYSCONFDIR; units to UNITDIR.

SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
# For /usr, systemd itself says where: in /lib on Debian 12, in /usr/lib on later ones.
UNITDIR ?= $(or $(if $(filter /usr,$(PREFIX)),$(shell $(or $(PKG_CONFIG),pkg-config) --variable=systemdsystemunitdir systemd 2>/dev/null)),$(PREFIX)/lib/systemd/system)
libdir := $(DESTDIR)$(PREFIX)/lib
sharedir := $(DESTDIR)$(PREFIX)/share/flashield
# Tools in Python, each with a worker in C beside it.
python_tools := bench sim
docdir := $(DESTDIR)$(PREFIX)/share/doc/flashield
mandir := $(DESTDIR)$(PREFIX)/share/man
bashdir := $(DESTDIR)$(PREFIX)/share/bash-completion/completions

units := $(wildcard packaging/systemd/*.service packaging/systemd/*.socket)
documents := README.md FIGURES.md DECISIONS.md CHANGELOG.md SECURITY.md segments/FORMAT.md $(wildcard packaging/doc/*.md packaging/doc/*.png)
samples := $(wildcard $(addprefix packaging/samples/*.,conf yml json lua) packaging/systemd/*.example)
sample_folders := $(wildcard packaging/samples/prometheus packaging/samples/grafana)

# What is written for /usr and /etc is made to fit where it goes.
relocate = sed -e 's,/usr/bin/,$(PREFIX)/bin/,g' -e 's,/etc/flashield\b,$(SYSCONFDIR)/flashield,g' $(1) > $(2)/$(notdir $(1)) && chmod 644 $(2)/$(notdir $(1))

.PHONY: install deb
install: all $(O)/completion/flashield ## copies all of it below DESTDIR, programs to PREFIX/bin
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(UNITDIR) $(libdir)/sysusers.d $(libdir)/tmpfiles.d $(docdir)/examples $(bashdir) \
		$(DESTDIR)$(SYSCONFDIR)/flashield $(DESTDIR)$(SYSCONFDIR)/apparmor.d
	install -m 755 $(filter-out $(addprefix %/flashield-,$(python_tools)),$(programs)) $(DESTDIR)$(PREFIX)/bin
	$(foreach tool,$(python_tools),install -D -m 755 -t $(libdir)/flashield $(B)/flashield-$(tool)-worker && \
		install -D -m 644 -t $(sharedir)/$(tool) $(wildcard tools/$(tool)/*.py) && \
		chmod 755 $(sharedir)/$(tool)/flashield_$(tool).py && \
		ln -sf ../share/flashield/$(tool)/flashield_$(tool).py $(DESTDIR)$(PREFIX)/bin/flashield-$(tool) &&) true
	$(foreach unit,$(units),$(call relocate,$(unit),$(DESTDIR)$(UNITDIR)) &&) true
	$(foreach file,$(wildcard packaging/systemd/*sysusers*.conf),install -m 644 $(file) $(libdir)/sysusers.d/flashield.conf &&) true
	$(foreach file,$(wildcard packaging/systemd/*tmpfiles*.conf),install -m 644 $(file) $(libdir)/tmpfiles.d/flashield.conf &&) true
	$(foreach page,$(wildcard packaging/man/*.[158]),install -D -m 644 -t $(mandir)/man$(subst .,,$(suffix $(page))) $(page) &&) true
	install -m 644 $(documents) LICENSE $(docdir)
	sed -i 's,](packaging/doc/,](,g' $(docdir)/README.md
	install -m 644 $(samples) $(docdir)/examples
	$(if $(sample_folders),cp -r $(sample_folders) $(docdir)/examples && chmod -R go+rX $(docdir)/examples)
	install -m 644 $(O)/completion/flashield $(bashdir)/flashield
	$(foreach tool,$(tool_dirs),ln -sf flashield $(bashdir)/flashield-$(tool) &&) true
	$(call relocate,packaging/apparmor/flashield,$(DESTDIR)$(SYSCONFDIR)/apparmor.d)
	test -e $(DESTDIR)$(SYSCONFDIR)/flashield/flashield.conf || \
		install -m 644 packaging/flashield.conf $(DESTDIR)$(SYSCONFDIR)/flashield

deb: ## builds the Debian packages of the tree as it is, into BUILD/deb
	@packaging/install-deps.sh build package
	@packaging/build-deb.sh $(BUILD)/deb

# Tables from the options, then the functions that read them.
$(O)/completion/flashield: $(O)/print-completion packaging/completion/flashield.bash
	$(call show,GEN,$@)mkdir -p $(@D) && { $(EMULATOR) $< && cat packaging/completion/flashield.bash; } > $@.$$$$ && mv -f $@.$$$$ $@

$(O)/print-completion: $(O)/packaging/completion/print.o $(O)/lib/conf.a $(O)/lib/base.a
	$(call show,LD,$@)$(call link,$(engine_libs))
