"""The probe sites of files, and the reasons for all refusals."""
